"""Who is at fault, from what the groups of a sweep showed; and which groups would tell more. Pure."""

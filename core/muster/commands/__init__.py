"""The sub-commands of the command line that need nothing but the contract, and the options that all share."""

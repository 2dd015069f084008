"""What the OpenAPI document says of an answer."""

import re

from muster_coordinator.web.route_table import ROUTES

PLACES = [(route, re.compile(re.sub(r"\{\w+\}", "[^/]+", route.path))) for route in ROUTES]


def route_of(method, path):
    """The route for this request; None where there is none."""
    return next((route for route, place in PLACES if route.method == method and place.fullmatch(path)), None)


def is_described(method, path, status):
    """Whether the document has such an answer. It has none where there is no route."""
    route = route_of(method, path)
    return route is None or status in (route.status, *route.problems) or (status == 304 and route.may_be_unchanged)

// The worker that all tabs of a browser share.

import { Feed } from "./feed.js";

const feed = new Feed();
self.onconnect = event => feed.add(event.ports[0]);

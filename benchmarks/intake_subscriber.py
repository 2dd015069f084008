"""A bare aiomqtt subscriber: counts messages and does nothing else.

Arguments: host, port, topic, number of messages. It says `ready` when it has subscribed and, when it has got all of
them, the time by the monotonic clock.
"""

import asyncio
import sys
import time

import aiomqtt

from muster_coordinator.runtime.subscribing import SUBSCRIBED_QOS


async def main() -> None:
    """Subscribes as the coordinator does."""
    host, port, topic, count = sys.argv[1:]
    waiting = int(count)
    async with aiomqtt.Client(host, int(port)) as client:
        await client.subscribe(topic, qos=SUBSCRIBED_QOS)
        print("ready", flush=True)
        async for _ in client.messages:
            waiting -= 1
            if waiting == 0:
                break
        print(time.monotonic(), flush=True)


if __name__ == "__main__":
    asyncio.run(main())

import asyncio
import contextlib
import socket

import aiomqtt
import pytest

from muster.config import Settings
from muster.errors import Unavailable
from muster.mqtt import connection_options
from muster_coordinator.runtime.broker import Snapshot, embedded_broker


def client(url: str, **options) -> aiomqtt.Client:
    return aiomqtt.Client(**connection_options(Settings().broker, url), **options)


@pytest.fixture
async def broker():
    async with embedded_broker("127.0.0.1:0") as url:
        yield url


async def next_message(receiver: aiomqtt.Client) -> aiomqtt.Message:
    async with asyncio.timeout(10):
        return await anext(aiter(receiver.messages))


async def test_a_free_port_is_picked_and_told(broker):
    """With port 0 the URL names the port that clients can use."""
    assert broker.startswith("mqtt://127.0.0.1:")
    assert not broker.endswith(":0")
    async with client(broker) as one, client(broker) as two:
        await two.subscribe("a/+", qos=1)
        await one.publish("a/b", b"hello", qos=1)
        assert (await next_message(two)).payload == b"hello"


async def test_strangers_keep_no_client_out(broker, monkeypatch):
    """A connection without a CONNECT makes room for one that sends it, and cannot fill the broker's memory."""
    strangers = []
    for number in range(600):
        reader, writer = await asyncio.open_connection("127.0.0.1", int(broker.rpartition(":")[2]))
        writer.write((b"", b"\x10\xff\xff\xff\x7f" + b"x" * 1000, b"\x10")[number % 3])
        strangers.append((reader, writer))
    async with client(broker) as one, client(broker) as two:
        await two.subscribe("a/+", qos=1)
        await one.publish("a/b", b"hello", qos=1)
        assert (await next_message(two)).payload == b"hello"
        over = [reader for reader, _ in strangers[:50]]
        async with asyncio.timeout(10):
            for reader in over:
                with contextlib.suppress(ConnectionError):
                    assert await reader.read() == b""
    for _, writer in strangers:
        writer.transport.abort()


async def test_retained_messages_are_kept(broker):
    """Who subscribes later gets what was published with retain."""
    async with client(broker) as one:
        await one.publish("a", b"kept", qos=1, retain=True)
    async with client(broker) as two:
        await two.subscribe("#", qos=1)
        message = await next_message(two)
        assert (message.payload, message.retain) == (b"kept", True)


async def test_nobody_hears_what_is_retained_for_others(broker):
    """A new client gets the retained messages of its own subscriptions, not of those of clients that are there."""
    async with client(broker) as watcher:
        await watcher.subscribe("node/+/presence", qos=1)
        await watcher.publish("node/1/presence", b"here", qos=1, retain=True)
        async with client(broker) as other:
            await other.subscribe("mine", qos=1)
            await watcher.publish("mine", b"for you", qos=1)
            assert (await next_message(other)).payload == b"for you"


async def test_the_last_will_is_published_when_a_client_breaks_off(broker):
    """A connection that ends without a goodbye is told to the others."""
    async with client(broker) as watcher:
        await watcher.subscribe("will", qos=1)
        host, port = broker.removeprefix("mqtt://").split(":")
        with socket.create_connection((host, int(port))) as raw:
            body = b"\x00\x04MQTT\x04\x06\x00\x3c" + b"\x00\x01x" + b"\x00\x04will" + b"\x00\x04gone"
            raw.sendall(bytes([0x10, len(body)]) + body)
            assert await asyncio.to_thread(raw.recv, 4) == b"\x20\x02\x00\x00"
        assert (await next_message(watcher)).payload == b"gone"


async def test_a_taken_port_is_named_with_its_setting(broker):
    """The message says which setting to change."""
    listen = broker.removeprefix("mqtt://")
    with pytest.raises(Unavailable, match=rf"broker.listen: cannot listen on {listen}: .*in use; .*broker.url"):
        async with embedded_broker(listen):
            pass


@pytest.mark.parametrize("walk", [iter, Snapshot.items], ids=["names", "items"])
def test_a_table_may_change_while_the_broker_goes_through_it(walk):
    """A client that comes while another is sent what is retained does not end the other's connection."""
    table = Snapshot(a=1, b=2)
    for number, _ in enumerate(walk(table)):
        table[f"new-{number}"] = 3
    assert list(table) == ["a", "b", "new-0", "new-1"]


async def test_garbage_from_a_client_hurts_nobody(broker, caplog):
    """Bytes that are not MQTT end that connection only, with at most a line in the log."""
    host, port = broker.removeprefix("mqtt://").split(":")
    for junk in (b"", b"GET / HTTP/1.0\r\n\r\n", b"\xff" * 100, b"\x10\x0a\x00\x04MQTT\x04"):
        _, writer = await asyncio.open_connection(host, int(port))
        writer.write(junk)
        await writer.drain()
        writer.close()
        await writer.wait_closed()
    async with client(broker) as one:
        await one.subscribe("a", qos=1)
        await one.publish("a", b"still here", qos=1)
        assert (await next_message(one)).payload == b"still here"
    assert [record for record in caplog.records if record.exc_info] == []
    assert len(caplog.records) <= 4


async def test_stopping_ends_clients_and_frees_the_port():
    """When the context ends, connections are closed and the port can be used again at once."""
    async with embedded_broker("127.0.0.1:0") as url:
        connected = client(url)
        await connected.__aenter__()
    with pytest.raises(aiomqtt.MqttError):
        await next_message(connected)
    async with embedded_broker(url.removeprefix("mqtt://")) as again:
        assert again == url

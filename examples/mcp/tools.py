"""Calls the tools of the store's Model Context Protocol, as an assistant does."""

import json
import os
import urllib.error
import urllib.request
import uuid

ADDRESS = os.environ.get("STORE_URL", "http://127.0.0.1:4000") + "/mcp"
VERSION = "2026-07-28"


def request(method, **params):
    """Sends one message. Every request declares version and capabilities, and repeats its method and tool in headers."""
    params["_meta"] = {
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    headers = {
        "Authorization": "Bearer " + os.environ["KEY"],
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": VERSION,
        "Mcp-Method": method,
        **({"Mcp-Name": params["name"]} if "name" in params else {}),
    }
    message = {"jsonrpc": "2.0", "id": str(uuid.uuid4()), "method": method, "params": params}
    sent = urllib.request.Request(ADDRESS, json.dumps(message).encode(), headers)
    try:
        with urllib.request.urlopen(sent) as response:
            return json.load(response)["result"]
    except urllib.error.HTTPError as refused:
        body = json.load(refused)
        raise SystemExit("{code}: {message}".format(**body.get("error", body)))


def call(tool, **arguments):
    result = request("tools/call", name=tool, arguments=arguments)
    if result.get("isError"):
        raise SystemExit(result["content"][0]["text"])
    return result["structuredContent"]


for tool in request("tools/list")["tools"]:
    print(tool["name"], "-", tool["title"])

rex = {"name": "Rex", "categoryId": "9007199254740993", "idempotencyKey": str(uuid.uuid4())}
first, second = call("create_pet", **rex), call("create_pet", **rex)
print("added once:", first == second, first["categoryId"])

after = None
while True:
    page = call("list_pets", limit=2, **({"after": after} if after else {}))
    for pet in page["items"]:
        print(pet["id"], pet["name"], pet["categoryId"], pet["status"])
    after = page.get("next")
    if after is None:
        break

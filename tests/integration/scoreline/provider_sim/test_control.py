"""The control endpoints of a running simulator."""

from tests.integration.scoreline.provider_sim.http_client import ASK, asking


async def test_settings_and_counts_are_there_while_it_runs():
    """HTTP requests read, change and reset them; an unknown name changes nothing."""
    async with asking(keys=["sim"]) as (sim, client):
        assert (await client.post("/_sim/settings", json={"mode": "text", "text": "New."})).json()[
            "text"
        ] == "New."
        assert (await client.post("/v1/messages", json=ASK)).json()["content"][0]["text"] == "New."
        assert (await client.post("/_sim/settings", json={"mood": "good"})).status_code == 400
        assert (await client.get("/_sim/settings")).json()["keys"] == 1
        stats = (await client.get("/_sim/stats")).json()
        assert (stats["calls"], stats["admitted"]) == ({"/v1/messages": {"200": 1}}, 1)
        await client.post("/_sim/reset")
        assert (await client.get("/_sim/stats")).json()["calls"] == {}
        assert sim.settings.answers.text == "New."

"""What people see of the platform in a browser: Chromium, on the pages of Dagster.

With SCREENSHOTS set to a directory the pages are kept there as pictures, for the docs.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from omnigraph_core.engine.omnigraph import Omnigraph
from tests.support.later import Later
from tests.support.live_platform import until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright import sync_api
    from playwright.sync_api import Locator, Page

    from tests.integration.platform.live.conftest import Evening
    from tests.support.live_platform import LivePlatform
else:
    sync_api = Later("playwright.sync_api")

_ALONE: Final = (
    # Nothing but the platform is to be reached, and the browser is not a person's.
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
_PAGE_SECONDS: Final = 120
"""Pages take a few; those are for a machine that is busy with other tests."""
_REPOSITORY: Final = "/locations/__repository__@omnigraph"
_INCIDENTS: Final = "/assets/river/nodes/Incident"
_WRONG: Final = {
    "type": "Incident",
    "data": {
        "number": "IN-2031-9",
        "severity": "awful",
        "status": "open",
        "recordedAt": "2031-01-01T00:00:00Z",
        "title": "A severity nobody has heard of",
        "text": "It is refused, and the file says why.",
    },
}
_GOOD: Final = {"type": "Incident", "data": {**_WRONG["data"], "severity": "high"}}  # type: ignore[dict-item]
_BLANK: Final = "about:blank"
_VIEWPORT: Final[sync_api.ViewportSize] = {"width": 1440, "height": 900}
_WIDE: Final[sync_api.ViewportSize] = {"width": 1920, "height": 900}
_HIGH: Final[sync_api.ViewportSize] = {"width": 1440, "height": 1500}
_FOLLOW: Final = """path => {
  history.pushState({}, "", path);
  dispatchEvent(new PopStateEvent("popstate", {state: {}}));
}"""
_RUNS: Final = """{ runsOrError(limit: 100) {
  ... on Runs { results { runId jobName status } } } }"""


@pytest.fixture(scope="module")
def page(live_platform: LivePlatform, evening: Evening) -> Iterator[Page]:
    """A browser; a file is on its way while pages are looked at."""
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=_ALONE)
        page = browser.new_page(
            base_url=live_platform.dagster_url,
            viewport=_VIEWPORT,
            reduced_motion="reduce",
        )
        page.set_default_timeout(_PAGE_SECONDS * 1000)
        sync_api.expect.set_options(timeout=_PAGE_SECONDS * 1000)
        yield page
        browser.close()


def visit(page: Page, path: str) -> None:
    """Go to a page as a link of Dagster's does: what is loaded already is not loaded again."""
    if page.url == _BLANK:
        page.goto(path)
    else:
        page.evaluate(_FOLLOW, path)


def leave(page: Page) -> None:
    """Look at nothing during a wait: pages of Dagster ask for news and draw without a pause."""
    page.goto(_BLANK)


def keep_picture(page: Page, name: str, *, above: Locator | None = None) -> None:
    """Keep what is seen of a page, or the part above an element."""
    if directory := os.environ.get("SCREENSHOTS"):
        page.wait_for_timeout(2000)  # what moves comes to rest
        clip: sync_api.FloatRect | None = None
        if above is not None and (box := above.bounding_box()) and page.viewport_size:
            width = page.viewport_size["width"]
            clip = {"x": 0, "y": 0, "width": width, "height": box["y"]}
        page.screenshot(path=Path(directory, f"{name}.png"), clip=clip)


def text(page: Page, words: str) -> Locator:
    return page.get_by_text(words, exact=True).first


def test_the_lineage_of_the_graph(page: Page) -> None:
    visit(page, "/asset-groups")
    for group in ("sources", "nodes", "edges", "publish", "embeddings", "indexes", "maintenance"):
        sync_api.expect(text(page, f"river_{group}")).to_be_visible()
    keep_picture(page, "lineage")
    visit(page, f"{_REPOSITORY}/asset-groups/river_nodes/list")
    for node in ("Crew", "Incident", "Reach"):
        sync_api.expect(text(page, f"river / nodes / {node}")).to_be_visible()


def test_an_asset_its_columns_and_plots(page: Page) -> None:
    visit(page, _INCIDENTS)
    sync_api.expect(text(page, "Row count")).to_be_visible()
    sync_api.expect(text(page, "enum(high, low, medium)")).to_be_visible()
    sync_api.expect(text(page, "manifest_version")).to_be_visible()
    sync_api.expect(text(page, "Latest check results")).to_be_visible()
    keep_picture(page, "asset")
    page.get_by_role("button", name="Plots").click()
    sync_api.expect(page.locator("canvas").first).to_be_visible()


def test_branches_are_partitions(page: Page) -> None:
    visit(page, f"{_INCIDENTS}?view=partitions")
    sync_api.expect(page.get_by_text("1 Partitions Selected")).to_be_visible()
    text(page, "main").click()
    sync_api.expect(text(page, "commit_id")).to_be_visible()
    keep_picture(page, "partitions")


def test_the_sensor_of_drops(page: Page) -> None:
    visit(page, f"{_REPOSITORY}/sensors/river_drops_sensor")
    sync_api.expect(
        page.get_by_text("Loads files that were dropped and have settled")
    ).to_be_visible()
    sync_api.expect(text(page, "river_load_job")).to_be_visible()
    sync_api.expect(text(page, "Running")).to_be_visible()
    keep_picture(page, "drops-sensor")


def test_the_steps_of_a_load(page: Page, live_platform: LivePlatform, evening: Evening) -> None:
    leave(page)
    evening.wait_until_put_away()
    loads = [
        run["runId"]
        for run in live_platform.graphql(_RUNS)["runsOrError"]["results"]
        if (run["jobName"], run["status"]) == ("river_load_job", "SUCCESS")
    ]
    first = loads[-1]  # that of the example, with all types
    steps = live_platform.steps(first)
    assert "river_load.river_stage_node[Incident]" in steps
    assert "river_load.river_stage_edge[WrittenBy]" in steps
    visit(page, f"/runs/{first}?logs=step%3Ariver_load.river_stage_node%5BIncident%5D")
    sync_api.expect(text(page, "node:Incident")).to_be_visible()
    sync_api.expect(page.get_by_role("link", name=live_platform.spark_ui_url).first).to_be_visible()
    keep_picture(page, "step", above=text(page, "STEP_SUCCESS"))
    visit(page, f"/runs/{first}")
    page.set_viewport_size(_HIGH)
    enlarge = page.locator("//button[contains(., 'Re-execute')]/preceding::button[1]")
    enlarge.click()  # the steps hide the log
    page.get_by_text("Succeeded (").click()
    sync_api.expect(text(page, "river_load.river_stage_edge[WrittenBy]")).to_be_visible()
    keep_picture(page, "load-run")
    enlarge.click()  # pages remember it
    page.set_viewport_size(_VIEWPORT)


def test_a_failed_run_shows_what_was_wrong(
    page: Page, live_platform: LivePlatform, evening: Evening
) -> None:
    leave(page)
    evening.wait_until_put_away()  # files that wait together are loaded together
    before = failed_loads(live_platform)
    live_platform.drop("wrong.jsonl", _WRONG)
    until(lambda: failed_loads(live_platform) > before, "the load to be refused")
    (run,) = failed_loads(live_platform) - before
    visit(page, f"/runs/{run}")
    sync_api.expect(
        page.get_by_text("1 blocking asset check failed with ERROR severity").first
    ).to_be_visible()
    visit(page, f"{_INCIDENTS}?view=checks")
    sync_api.expect(text(page, "violating_rows")).to_be_visible()
    sync_api.expect(
        page.get_by_text("invalid enum value 'awful' on Incident.severity")
    ).to_be_visible()
    keep_picture(page, "violations")
    assert (live_platform.directory / "drops/_quarantine/main/wrong.jsonl").exists()


def test_launching_a_materialisation(
    page: Page, live_platform: LivePlatform, evening: Evening
) -> None:
    leave(page)
    evening.wait_until_enriched()  # which makes the topology as well
    before = live_platform.materialised("river/topology")["river/topology"]
    visit(page, "/assets/river/topology")
    page.get_by_role("button", name="Materialize").first.click()
    page.get_by_role("button", name="All", exact=True).click()
    with page.expect_response(lambda answer: "launch" in (answer.request.post_data or "")):
        page.get_by_role("button", name="Launch 1 run").click()
    leave(page)
    until(
        lambda: live_platform.materialised("river/topology")["river/topology"] > before,
        "the topology to be made anew",
    )


def test_a_failure_on_main_is_not_hidden_by_another_branch(
    page: Page, live_platform: LivePlatform
) -> None:
    leave(page)
    with Omnigraph.open(str(live_platform.directory / "graph")) as graph:
        graph.branch_create("spring")
    (live_platform.directory / "drops" / "spring").mkdir()
    live_platform.drop("good.jsonl", _GOOD, branch="spring")
    loaded = live_platform.directory / "drops/_loaded/spring/good.jsonl"
    until(loaded.exists, "the file of the branch to be loaded")
    visit(page, f"{_INCIDENTS}?view=checks&checkDetail=staged_rows")
    sync_api.expect(page.get_by_text("Execution history", exact=True)).to_be_visible()
    page.get_by_text("Partitions", exact=True).last.click()  # the tab of the check
    sync_api.expect(page.get_by_text("Failed (1)", exact=True)).to_be_visible()
    sync_api.expect(page.get_by_text("Passed (1)", exact=True)).to_be_visible()
    keep_picture(page, "checks-by-branch")


@pytest.mark.long("test_an_asset_its_columns_and_plots; this one has more loads to draw")
def test_numbers_over_time(page: Page, live_platform: LivePlatform) -> None:
    leave(page)
    for count in (2, 5, 3, 6):
        name = f"IN-2032-{count}"
        numbers = [{**_GOOD["data"], "number": f"{name}{one}"} for one in range(count)]  # type: ignore[dict-item]
        live_platform.drop(f"{name}.jsonl", *({"type": "Incident", "data": one} for one in numbers))
        until((live_platform.directory / f"drops/_loaded/main/{name}.jsonl").exists, "its load")
    visit(page, _INCIDENTS)
    sync_api.expect(text(page, "manifest_version")).to_be_visible()
    page.get_by_role("button", name="Plots").click()
    page.get_by_role("button", name="Events").click()
    sync_api.expect(text(page, "dagster/row_count")).to_be_visible()
    page.locator("canvas").first.scroll_into_view_if_needed()
    keep_picture(page, "plots")


@pytest.mark.long("test_branch_jobs has the table of conflicts, and other checks are seen above")
def test_the_conflicts_of_a_merge(page: Page, live_platform: LivePlatform) -> None:
    leave(page)

    def load(graph: Omnigraph, branch: str, **changed: str) -> None:
        data = {**_GOOD["data"], "number": "IN-2033-1", **changed}  # type: ignore[dict-item]
        record = json.dumps({"type": "Incident", "data": data})
        graph.load(record.encode(), branch=branch, embed="off")

    with Omnigraph.open(str(live_platform.directory / "graph")) as graph:
        load(graph, "main")
        graph.branch_create("autumn")
        load(graph, "main", severity="low", status="watched")
        load(graph, "autumn", severity="medium", status="closed", title="Over")
    merge = {"river_merge_branch": {"config": {"source": "autumn"}}}
    run_id = live_platform.launch_job("river_merge_branch_job", {"ops": merge})
    until(lambda: live_platform.status(run_id) in ("SUCCESS", "FAILURE"), "the dry run")
    assert live_platform.status(run_id) == "SUCCESS"
    page.set_viewport_size(_WIDE)
    visit(page, "/assets/river/manifest?view=checks&checkDetail=mergeable")
    sync_api.expect(text(page, "conflicting_rows")).to_be_visible()
    sync_api.expect(text(page, "divergent_update")).to_be_visible()
    keep_picture(page, "conflicts")
    page.set_viewport_size(_VIEWPORT)


def failed_loads(platform: LivePlatform) -> set[str]:
    runs = platform.graphql(_RUNS)["runsOrError"]["results"]
    return {
        run["runId"]
        for run in runs
        if (run["jobName"], run["status"]) == ("river_load_job", "FAILURE")
    }

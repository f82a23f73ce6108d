"""Addresses of the dashboards."""

import pytest

from grafana.catalogue import DASHBOARDS
from grafana.pages.addresses import BATCH, EVALUATION, ORDERING, TO_BATCH, TO_EVALUATION, others


@pytest.mark.parametrize("page", DASHBOARDS, ids=lambda page: page.uid)
def test_a_page_links_to_all_others_by_title(page):
    """Each link has the title of the dashboard that it opens; none opens the page itself."""
    titles = {each.title: f"/d/{each.uid}" for each in DASHBOARDS if each is not page}
    assert others(f"/d/{page.uid}") == titles == page.links


def test_links_of_cells_pass_the_raw_value_on():
    """A formatted id would not be found."""
    assert TO_BATCH == BATCH + "?var-batch=${__value.raw}"
    assert TO_EVALUATION == EVALUATION + "?var-evaluation=${__value.raw}"
    assert ORDERING not in others(ORDERING).values()

"""The script that draws the charts: Vega, Vega-Lite and Vega-Embed in one, as vl-convert ships them."""

from functools import cache

import vl_convert

VEGA_LITE = "6.4"


@cache
def vega_script() -> str:
    """JavaScript to stand within `<script>`: it fetches nothing, and sets `vegaEmbed`. Takes 3 s the first time."""
    script: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", VEGA_LITE)
    return script.replace("</script", "<\\/script")

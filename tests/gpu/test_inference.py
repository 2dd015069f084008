"""The check `inference` on a real GPU, through the command line."""

import pytest

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
def test_tokens_are_generated_in_every_precision(check_run, precision):
    """The same bits each time, and with the cache the same logits as without it but for rounding."""
    run = check_run("inference", "--param", f"precision={precision}")
    assert not [finding for finding in run["findings"] if finding["severity"] != "INFO"], run["findings"]
    assert max(run["metrics"]["changed_results"]) == 0
    assert min(run["metrics"]["prefill_tokens_per_s"]) > min(run["metrics"]["decode_tokens_per_s"]) > 100

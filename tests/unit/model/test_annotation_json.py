from typing import Any

import pytest

from hansa.model import annotation_json


def test_json_of_the_type_is_decoded():
    assert annotation_json.decode('{"r1": 1}', dict[str, int]) == {"r1": 1}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[" * 3000 + "]" * 3000, "nested more than 32 levels"),
        ('{"a":' * 300 + "1" + "}" * 300, "nested more than 32 levels"),
        (f'{{"cpu": "{"1" * 300_000}"}}', "more than the maximum of 16384"),
        ('{"cpu": ', "truncated"),
        ('["a"]', "Expected"),
        ('{"\ud800": 1}', "surrogates not allowed"),
    ],
)
def test_what_is_too_large_too_deep_or_invalid_has_one_error(text, why):
    with pytest.raises(annotation_json.AnnotationJsonError, match=why):
        annotation_json.decode(text, dict[str, int])


def test_brackets_in_strings_are_no_depth():
    assert annotation_json.decode('{"a": "' + "[{" * 100 + '\\""}', dict[str, Any]) == {"a": "[{" * 100 + '"'}

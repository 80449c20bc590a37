"""Pods: small steps down, what a lower pod takes up later (`following`), and what it tells (`status`).

`DOWN` is the list for a lower cluster that serves as more nodes of the upper one: same names, its own scheduler.
"""

from typing import Final

from hansa.model.translation import marking
from hansa.model.translation.pod import access, constraints, fields, following, labels, relations, spec, volumes

DOWN: Final = (
    marking.leave_notes_behind,
    labels.put_labels_aside,
    labels.mark_virtual,
    spec.on_spec(
        fields.drop_node_fields,
        fields.drop_readiness_gates,
        fields.choose_scheduler,
        fields.choose_priority_class,
        constraints.restore_constraints,
        relations.settle_label_keys,
        volumes.claim_ephemeral_volumes,
        access.share_tokens,
        access.rename_root_ca,
        access.point_to_upper_api,
    ),
    following.note_images,
)

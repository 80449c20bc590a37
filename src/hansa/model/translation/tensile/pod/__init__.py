"""Pods: small steps down, what a lower pod takes up later (`following`), and what it tells (`status`).

`DOWN` is the list for a lower cluster that serves as more nodes of the upper one: same names, its own scheduler.
"""

from typing import Final

from hansa.model.translation.common import object_metadata
from hansa.model.translation.common.pod import access, affinity, fields, spec, updates, volumes
from hansa.model.translation.tensile.pod import constraints, labels

DOWN: Final = (
    object_metadata.leave_notes_behind,
    labels.put_labels_aside,
    labels.mark_virtual,
    spec.on_spec(
        fields.drop_node_fields,
        fields.drop_readiness_gates,
        fields.choose_scheduler,
        fields.choose_priority_class,
        constraints.restore_constraints,
        affinity.settle_label_keys,
        volumes.claim_ephemeral_volumes,
        access.share_tokens,
        access.rename_root_ca,
        access.point_to_upper_api,
    ),
    updates.note_images,
)

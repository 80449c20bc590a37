"""The steps that translate a pod for a lower cluster behind a virtual node: same name, the lower cluster's scheduler.

Updates and status are those of `translation.common.pod`.
"""

from typing import Final

from hansa.model.translation.common import object_metadata
from hansa.model.translation.common.pod import access, affinity, fields, spec, updates, volumes
from hansa.model.translation.tensile.pod import constraints, labels

DOWN: Final = (
    object_metadata.drop_upper_annotations,
    labels.move_ignored_labels,
    labels.mark_virtual,
    spec.on_spec(
        fields.drop_node_fields,
        fields.drop_readiness_gates,
        fields.choose_scheduler,
        fields.choose_priority_class,
        constraints.restore_constraints,
        affinity.drop_applied_label_keys,
        volumes.claim_ephemeral_volumes,
        access.mount_upper_tokens,
        access.rename_root_ca,
        access.point_to_upper_api,
    ),
    updates.annotate_images,
)

{{/* Labels of all objects. */}}
{{- define "hansa.labels" -}}
app.kubernetes.io/name: hansa
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{/* Labels by which the pods of a component are selected: (root, component). They never change. */}}
{{- define "hansa.selector" -}}
app.kubernetes.io/name: hansa
app.kubernetes.io/instance: {{ (index . 0).Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{- define "hansa.image" -}}
{{- $image := .Values.image -}}
{{- if $image.digest -}}
{{ $image.repository }}@{{ $image.digest }}
{{- else -}}
{{ $image.repository }}:{{ $image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end }}

{{/* "true" in one of the modes: (root, mode, …) */}}
{{- define "hansa.in" -}}
{{- if has (index . 0).Values.mode (rest .) }}true{{ end -}}
{{- end }}

{{/*
RBAC of a component, from rights/FILE.yaml: (root, file). These files are complete manifests, so that tests can apply
them alone. Here they get the namespace and the labels of the release.
*/}}
{{- define "hansa.rights" -}}
{{- $root := index . 0 -}}
{{- range $text := regexSplit "(?m)^---$" ($root.Files.Get (printf "rights/%s.yaml" (index . 1))) -1 }}
{{- $object := fromYaml $text }}
{{- if and $object (ne $object.kind "Namespace") }}
{{- $metadata := $object.metadata }}
{{- if has $metadata.namespace (list "vc-manager" "hansa-system" "admiralty") }}
{{- $_ := set $metadata "namespace" $root.Release.Namespace }}
{{- end }}
{{- $_ := set $metadata "labels" (include "hansa.labels" $root | fromYaml) }}
{{- range $object.subjects }}
{{- $_ := set . "namespace" $root.Release.Namespace }}
{{- end }}
---
{{ toYaml $object }}
{{ end }}
{{- end }}
{{- end }}

{{- define "kruise.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "kruise.managerImage" -}}
{{ .Values.manager.image.repository }}:{{ .Values.manager.image.tag | default .Chart.AppVersion }}
{{- end -}}

{{- define "kruise.daemonImage" -}}
{{ .Values.daemon.image.repository }}:{{ .Values.daemon.image.tag | default .Chart.AppVersion }}
{{- end -}}

{{- define "kruise.hookImage" -}}
{{- if .Values.helmHooks.image.repository -}}
{{ .Values.helmHooks.image.repository }}:{{ .Values.helmHooks.image.tag | default .Chart.AppVersion }}
{{- else -}}
{{ include "kruise.managerImage" . }}
{{- end -}}
{{- end -}}

{{/* The webhooks of a file: in the release's namespace, with its time limit, without those of pods if their gate is off. */}}
{{- define "kruise.webhooks" -}}
{{- $values := .context.Values -}}
{{- range (.context.Files.Get .file | fromJsonArray) }}
{{- $service := set .clientConfig.service "namespace" $values.installation.namespace }}
{{- if not (and (contains "PodWebhook=false" $values.featureGates) (has $service.path (list "/mutate-pod" "/validate-pod"))) }}
- {{ set . "timeoutSeconds" (int $values.webhookConfiguration.timeoutSeconds) | toJson }}
{{- end }}
{{- end }}
{{- end -}}

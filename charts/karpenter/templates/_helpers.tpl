{{- define "karpenter.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "karpenter.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride }}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- else if contains $name .Release.Name }}
{{- .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "karpenter.selectorLabels" -}}
app.kubernetes.io/name: {{ include "karpenter.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "karpenter.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "karpenter.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with .Values.additionalLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* The metadata of an object: name, labels and annotations. Call with (list . "name suffix"). */}}
{{- define "karpenter.metadata" -}}
{{- $root := index . 0 }}
name: {{ include "karpenter.fullname" $root }}{{ index . 1 }}
labels:
  {{- include "karpenter.labels" $root | nindent 2 }}
{{- with $root.Values.additionalAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "karpenter.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "karpenter.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "karpenter.image" -}}
{{- $image := .Values.controller.image }}
{{- printf "%s:%s" $image.repository (default (printf "v%s" .Chart.AppVersion) $image.tag) }}
{{- with $image.digest }}@{{ . }}{{ end }}
{{- end }}

{{- /* The NodeClass of the provider: its group and the name of its collection. */}}
{{- define "karpenter.nodeClassGroup" -}}
{{- $groups := dict "kwok" "karpenter.kwok.sh" "aws" "karpenter.k8s.aws" "azure" "karpenter.azure.com" }}
{{- if not (hasKey $groups .Values.provider) }}
{{- fail (printf "provider %q is unknown: expected kwok, aws or azure" .Values.provider) }}
{{- end }}
{{- get $groups .Values.provider }}
{{- end }}

{{- define "karpenter.nodeClasses" -}}
{{- get (dict "kwok" "kwoknodeclasses" "aws" "ec2nodeclasses" "azure" "aksnodeclasses") .Values.provider }}
{{- end }}

{{- /* Rules about other pods mean this chart's pods where they do not say. */}}
{{- define "karpenter.affinity" -}}
{{- $affinity := deepCopy .Values.affinity }}
{{- $selector := dict "matchLabels" (include "karpenter.selectorLabels" . | fromYaml) }}
{{- with $affinity.podAntiAffinity }}
{{- range .requiredDuringSchedulingIgnoredDuringExecution }}
{{- if not .labelSelector }}{{ $_ := set . "labelSelector" $selector }}{{ end }}
{{- end }}
{{- range .preferredDuringSchedulingIgnoredDuringExecution }}
{{- if not .podAffinityTerm.labelSelector }}{{ $_ := set .podAffinityTerm "labelSelector" $selector }}{{ end }}
{{- end }}
{{- end }}
{{- toYaml $affinity }}
{{- end }}

{{- define "karpenter.spread" -}}
{{- $selector := dict "matchLabels" (include "karpenter.selectorLabels" . | fromYaml) }}
{{- $all := deepCopy .Values.topologySpreadConstraints }}
{{- $otherwise := ternary "ScheduleAnyway" "DoNotSchedule" (eq .Values.provider "kwok") }}
{{- range $all }}
{{- if not .whenUnsatisfiable }}{{ $_ := set . "whenUnsatisfiable" $otherwise }}{{ end }}
{{- if not .labelSelector }}{{ $_ := set . "labelSelector" $selector }}{{ end }}
{{- end }}
{{- toYaml $all }}
{{- end }}

{{- define "karpenter.featureGates" -}}
{{- $gates := .Values.settings.featureGates }}
{{- $all := list }}
{{- range $name := list "ReservedCapacity" "SpotToSpotConsolidation" "NodeRepair" "NodeOverlay" "StaticCapacity" "CapacityBuffer" "TerminateFirstDrift" "TerminateFirstRepair" "PodDeletionCostManagement" }}
{{- $all = append $all (printf "%s=%t" $name (get $gates (untitle $name) | default false)) }}
{{- end }}
{{- join "," $all }}
{{- end }}

{{- /* Generated from the manifests for kustomize by `make docs`. */ -}}
{{- define "muster.acting" }}{{ if or .Values.components.acting (eq .Values.mode "dry-run") (eq .Values.mode "enforce") }}on{{ end }}{{ end }}
{{- define "muster.agent-metrics" }}{{ if or .Values.components.agentMetrics }}on{{ end }}{{ end }}
{{- define "muster.broker" }}{{ if or .Values.components.broker }}on{{ end }}{{ end }}
{{- define "muster.gke" }}{{ if or .Values.components.gke .Values.components.gkeA3u .Values.components.gkeA4 }}on{{ end }}{{ end }}
{{- define "muster.gke-gib" }}{{ if or .Values.components.gkeGib .Values.components.gkeA3u .Values.components.gkeA4 }}on{{ end }}{{ end }}
{{- define "muster.kernel-log" }}{{ if or .Values.components.kernelLog }}on{{ end }}{{ end }}
{{- define "muster.monitoring" }}{{ if or .Values.components.monitoring }}on{{ end }}{{ end }}
{{- define "muster.rdma" }}{{ if or .Values.components.rdma .Values.components.gkeA3u .Values.components.gkeA4 }}on{{ end }}{{ end }}
{{- define "muster.reservations" }}{{ if or .Values.components.reservations }}on{{ end }}{{ end }}
{{- define "muster.standbys" }}{{ if or .Values.components.standbys }}on{{ end }}{{ end }}
{{- define "muster.gke-a3u" }}{{ if or .Values.components.gkeA3u }}on{{ end }}{{ end }}
{{- define "muster.gke-a4" }}{{ if or .Values.components.gkeA4 }}on{{ end }}{{ end }}
{{- define "muster.dry-run" }}{{ if or (eq .Values.mode "dry-run") }}on{{ end }}{{ end }}
{{- define "muster.enforce" }}{{ if or (eq .Values.mode "enforce") }}on{{ end }}{{ end }}

{{- define "pilotage.labels" -}}
app.kubernetes.io/name: pilotage
{{- end }}

{{- define "pilotage.config" -}}
{{- if .Values.config }}
{{- toYaml .Values.config }}
{{- else -}}
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection:
  leaderElect: true
  resourceName: {{ .Values.leaseName }}
  resourceNamespace: {{ .Release.Namespace }}
profiles:
  - schedulerName: {{ .Values.schedulerName }}
{{- end }}
{{- end }}

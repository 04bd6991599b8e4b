{{- $all := slice -}}
{{- range site.Pages -}}
  {{- if .File -}}
    {{- $all = $all | append (dict "title" (partial "title.html" .) "url" (strings.TrimPrefix "/" (cond .IsHome "/index.html" .RelPermalink)) "text" .Plain) -}}
  {{- end -}}
{{- end -}}
espalierPages = {{ $all | jsonify }};

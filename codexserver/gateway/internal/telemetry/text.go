package telemetry

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// ServeHTTP answers with all metrics in the text format of Prometheus.
func (t *Telemetry) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, err := t.text(r.Context())
	if err != nil {
		http.Error(w, "the metrics cannot be read", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = w.Write(text) // fails only if the reader has disconnected
}

// text returns all metrics in the text format of Prometheus.
func (t *Telemetry) text(ctx context.Context) ([]byte, error) {
	var all metricdata.ResourceMetrics
	if err := t.reader.Collect(ctx, &all); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	for _, scope := range all.ScopeMetrics {
		slices.SortFunc(scope.Metrics, func(a, b metricdata.Metrics) int { return cmp.Compare(a.Name, b.Name) })
		for _, m := range scope.Metrics {
			writeMetric(&b, m)
		}
	}
	return b.Bytes(), nil
}

func writeMetric(b *bytes.Buffer, m metricdata.Metrics) {
	head := func(kind string) {
		fmt.Fprintf(b, "# HELP %[1]s %[2]s\n# TYPE %[1]s %[3]s\n", m.Name, m.Description, kind)
	}
	switch d := m.Data.(type) {
	case metricdata.Sum[int64]:
		kind := "gauge"
		if d.IsMonotonic {
			kind = "counter"
		}
		head(kind)
		writePoints(b, m.Name, d.DataPoints)
	case metricdata.Gauge[int64]:
		head("gauge")
		writePoints(b, m.Name, d.DataPoints)
	case metricdata.Histogram[float64]:
		head("histogram")
		for _, p := range sorted(d.DataPoints, func(p metricdata.HistogramDataPoint[float64]) attribute.Set { return p.Attributes }) {
			sum := uint64(0)
			for i, bound := range p.Bounds {
				sum += p.BucketCounts[i]
				fmt.Fprintf(b, "%s_bucket%s %d\n", m.Name, labels(p.Attributes, "le", number(bound)), sum)
			}
			fmt.Fprintf(b, "%s_bucket%s %d\n", m.Name, labels(p.Attributes, "le", "+Inf"), p.Count)
			fmt.Fprintf(b, "%s_sum%s %s\n", m.Name, labels(p.Attributes), number(p.Sum))
			fmt.Fprintf(b, "%s_count%s %d\n", m.Name, labels(p.Attributes), p.Count)
		}
	}
}

func writePoints(b *bytes.Buffer, name string, points []metricdata.DataPoint[int64]) {
	for _, p := range sorted(points, func(p metricdata.DataPoint[int64]) attribute.Set { return p.Attributes }) {
		fmt.Fprintf(b, "%s%s %d\n", name, labels(p.Attributes), p.Value)
	}
}

// sorted sorts points by their labels and returns them.
func sorted[P any](points []P, of func(P) attribute.Set) []P {
	slices.SortFunc(points, func(a, b P) int { return strings.Compare(labels(of(a)), labels(of(b))) })
	return points
}

func number(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }

var escaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// labels returns the labels of a sample in braces, or "" without any. more is empty, or the
// name and the value of one more label.
func labels(set attribute.Set, more ...string) string {
	var parts []string
	for _, a := range set.ToSlice() {
		parts = append(parts, string(a.Key)+`="`+escaper.Replace(a.Value.String())+`"`)
	}
	if len(more) == 2 {
		parts = append(parts, more[0]+`="`+more[1]+`"`)
	}
	if len(parts) == 0 {
		return ""
	}
	return "{" + strings.Join(parts, ",") + "}"
}

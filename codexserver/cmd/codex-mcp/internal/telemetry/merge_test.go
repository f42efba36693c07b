package telemetry_test

import (
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/cmd/codex-mcp/internal/telemetry"
	"github.com/codexmcp/codexmcp/codexserver/streamable"
	"github.com/google/go-cmp/cmp"
)

const mergeOwn = `# HELP a_total Of all.
# TYPE a_total counter
a_total{status="401"} 1
`

const mergeAnn = `# HELP a_total Other words.
# TYPE a_total counter
a_total{status="200"} 2
# HELP h Seconds.
# TYPE h histogram
h_bucket{outcome="a \"}, b",le="+Inf"} 1
h_sum{outcome="a \"}, b"} 0.5
h_count{outcome="a \"}, b"} 1
# TYPE g gauge
g -3
`

// mergeBob has lines that a Telemetry does not write.
const mergeBob = `early 1
# TYPE a_total gauge
a_total 3
# TYPE g gauge
g 4
g{principal="ann"} 5
g{a="b",principal="ann"} 6
g{a="b} 7
g 8 9
other 10
h_sum 11
# TYPE h summary
# EOF
`

const mergeWant = `# HELP a_total Of all.
# TYPE a_total counter
a_total{status="401"} 1
a_total{principal="ann",status="200"} 2
# TYPE g gauge
g{principal="ann"} -3
g{principal="bob"} 4
# HELP h Seconds.
# TYPE h histogram
h_bucket{principal="ann",outcome="a \"}, b",le="+Inf"} 1
h_sum{principal="ann",outcome="a \"}, b"} 0.5
h_count{principal="ann",outcome="a \"}, b"} 1
`

// TestMerge checks that an invalid text of one principal does not change the metrics of
// others.
func TestMerge(t *testing.T) {
	got := string(telemetry.Merge(mergeOwn, map[string]string{"bob": mergeBob, "ann": mergeAnn}))
	if diff := cmp.Diff(strings.Split(mergeWant, "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestMergeAll checks that Merge keeps everything that a Telemetry writes.
func TestMergeAll(t *testing.T) {
	tel := newTelemetry(t, nil)
	tel.Report(streamable.Report{Method: "tools/call", Status: 200})
	text := read(tel)
	if got := string(telemetry.Merge(text, nil)); got != text {
		t.Errorf("(-want +got):\n%s", cmp.Diff(text, got))
	}
	got := string(telemetry.Merge("", map[string]string{"ann": text}))
	got = strings.NewReplacer(`{principal="ann",`, "{", `{principal="ann"}`, "").Replace(got)
	if got != text {
		t.Errorf("of a principal (-want +got):\n%s", cmp.Diff(text, got))
	}
}

package interop

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/VictoriaMetrics/metricsql"
	"github.com/goccy/go-yaml"
)

// TestAlerts parses the alerts for Prometheus. The page about metrics has each metric that they use, with its labels, and
// each section of the documentation that they name exists.
func TestAlerts(t *testing.T) {
	page := func(name string) string {
		text, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	labels := map[string]string{"up": "`job` `instance`"} // which Prometheus makes
	for _, row := range regexp.MustCompile("(?m)^\\| `(codex_mcp_\\w+)` \\|([^|]*)\\|").FindAllStringSubmatch(page("docs/operate/operating.md"), -1) {
		labels[row[1]] = row[2] + " `principal` `le`"
	}
	var file struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert, Expr, For string
				Annotations      struct{ Summary, Description string }
			}
		}
	}
	read := yaml.NewDecoder(strings.NewReader(page("packaging/prometheus/codex-mcp.yml")), yaml.DisallowUnknownField())
	if err := read.Decode(&file); err != nil || len(file.Groups) != 1 || len(file.Groups[0].Rules) < 6 {
		t.Fatalf("%v: %+v", err, file)
	}
	for _, r := range file.Groups[0].Rules {
		expr, err := metricsql.Parse(r.Expr)
		if err != nil || r.Alert == "" || r.For == "" || r.Annotations.Summary == "" || r.Annotations.Description == "" {
			t.Errorf("%+v: %v", r, err)
			continue
		}
		metricsql.VisitAll(expr, func(e metricsql.Expr) {
			m, ok := e.(*metricsql.MetricExpr)
			if !ok || len(m.LabelFilterss) != 1 {
				return
			}
			name := m.LabelFilterss[0][0].Value
			known, ok := labels[regexp.MustCompile("_(count|sum|bucket)$").ReplaceAllString(name, "")]
			if !ok {
				t.Errorf("%s: the page lacks the metric %s", r.Alert, name)
			}
			for _, l := range m.LabelFilterss[0][1:] {
				if !strings.Contains(known, "`"+l.Label+"`") {
					t.Errorf("%s: the page lacks the label %s of %s", r.Alert, l.Label, name)
				}
			}
		})
		for _, link := range regexp.MustCompile(`docs/\S+\.md#\S+`).FindAllString(r.Annotations.Description, -1) {
			name, anchor, _ := strings.Cut(link, "#")
			if !regexp.MustCompile(`(?mi)^#+ ` + strings.ReplaceAll(anchor, "-", " ") + "$").MatchString(page(name)) {
				t.Errorf("%s: %s does not exist", r.Alert, link)
			}
		}
	}
}

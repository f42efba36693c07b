package telemetry

import (
	"bytes"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Merge returns the metrics of several processes as one text. others has the texts of other
// processes by principal, and each of their samples gets the label principal. Merge drops
// lines that a [Telemetry] does not write, so that one process cannot break the whole text.
func Merge(own string, others map[string]string) []byte {
	m := families{}
	m.add(own, "")
	for _, principal := range slices.Sorted(maps.Keys(others)) {
		m.add(others[principal], principal)
	}
	var b bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(m)) {
		b.WriteString(m[name].head)
		b.WriteString(m[name].samples.String())
	}
	return b.Bytes()
}

// families are metrics by name.
type families map[string]*family

// family is one metric of all processes.
type family struct {
	kind    string
	head    string // its HELP and TYPE
	samples strings.Builder
}

var (
	helpLine   = regexp.MustCompile(`^# HELP ([a-zA-Z_][a-zA-Z0-9_]*) [^\r]*$`)
	typeLine   = regexp.MustCompile(`^# TYPE ([a-zA-Z_][a-zA-Z0-9_]*) (counter|gauge|histogram)$`)
	sampleLine = regexp.MustCompile(`^([a-zA-Z_][a-zA-Z0-9_]*)(?:\{((?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\]|\\[\\"n])*",?)*)\})? ([-+0-9.e]+)$`)
	ownLabel   = regexp.MustCompile(`(?:^|",)principal="`)
)

// add adds the text of one process. It drops a metric whose type differs from that of an
// earlier process.
func (m families) add(text, principal string) {
	help, name := "", ""
	for line := range strings.SplitSeq(strings.ToValidUTF8(text, "?"), "\n") {
		if helpLine.MatchString(line) {
			help = line
			continue
		}
		if p := typeLine.FindStringSubmatch(line); p != nil {
			name = p[1]
			if m[name] == nil {
				m[name] = &family{kind: p[2], head: line + "\n"}
				if h := helpLine.FindStringSubmatch(help); h != nil && h[1] == name {
					m[name].head = help + "\n" + line + "\n"
				}
			}
			if m[name].kind != p[2] {
				name = ""
			}
			continue
		}
		p := sampleLine.FindStringSubmatch(line)
		if p == nil || name == "" || !m[name].has(p[1], name) {
			continue
		}
		if principal == "" {
			m[name].samples.WriteString(line + "\n")
			continue
		}
		if ownLabel.MatchString(p[2]) {
			continue // a sample must not have the label twice
		}
		labels := `principal="` + escaper.Replace(principal) + `"`
		if p[2] != "" {
			labels += "," + p[2]
		}
		m[name].samples.WriteString(p[1] + "{" + labels + "} " + p[3] + "\n")
	}
}

// has reports whether a sample with this name belongs to the metric.
func (f *family) has(sample, name string) bool {
	if f.kind != "histogram" {
		return sample == name
	}
	part, ok := strings.CutPrefix(sample, name)
	return ok && (part == "_bucket" || part == "_sum" || part == "_count")
}

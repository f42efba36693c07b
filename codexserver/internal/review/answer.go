package review

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/text"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Result is the answer of a reviewer.
type Result struct {
	Findings []protocol.Finding
	// Verdict is nil if the answer has no readable one.
	Verdict *protocol.Verdict
	// Problems are the faults of the answer, except those of single findings.
	Problems []string
}

// Limits of an answer: bytes of its texts, and the number of findings.
const (
	maxTitle    = 400
	maxBody     = 8 << 10
	maxPath     = 1 << 10
	maxFindings = 1000
)

// members is a JSON object.
type members map[string]jsontext.Value

// Parse reads an answer. It reports a fault of one finding in that finding. It fails only
// if the answer as a whole is unusable.
func Parse(answer string) (*Result, error) {
	answer = unfence(strings.TrimSpace(answer))
	if answer == "" {
		return nil, errors.New("the reviewer did not answer")
	}
	var top members
	if err := json.Unmarshal([]byte(answer), &top); err != nil || top == nil {
		return nil, fmt.Errorf("the answer is not the JSON object that was asked for: %w", cmpError(err))
	}
	raw, ok := take(top, "findings")
	if !ok {
		return nil, errors.New("the answer has no findings, not even an empty list of them")
	}
	var list []jsontext.Value
	if raw.Kind() != '[' || json.Unmarshal(raw, &list) != nil {
		return nil, errors.New("the answer's findings are not a list")
	}
	r := &Result{}
	if more := len(list) - maxFindings; more > 0 {
		r.Problems = append(r.Problems, fmt.Sprintf("%d findings are left out: there are more than %d.", more, maxFindings))
		list = list[:maxFindings]
	}
	for _, raw := range list {
		r.Findings = append(r.Findings, finding(raw))
	}
	r.verdict(top)
	for _, name := range slices.Sorted(maps.Keys(top)) {
		r.Problems = append(r.Problems, fmt.Sprintf("The answer has the member %.100q, which has no meaning.", name))
	}
	if len(r.Problems) > maxProblems {
		r.Problems = r.Problems[:maxProblems]
	}
	return r, nil
}

const maxProblems = 20

func cmpError(err error) error {
	if err == nil {
		return errors.New("it is null")
	}
	return err
}

// unfence removes a code fence around the whole text. Models write one even if the prompt
// forbids it.
func unfence(text string) string {
	inner, ok := strings.CutPrefix(text, "```")
	if !ok {
		return text
	}
	inner, ok = strings.CutSuffix(inner, "```")
	head, body, found := strings.Cut(inner, "\n")
	if head = strings.TrimSpace(head); !ok || !found || head != "" && head != "json" {
		return text
	}
	return strings.TrimSpace(body)
}

// take removes a member and returns it. A null counts as missing.
func take(m members, name string) (jsontext.Value, bool) {
	raw, ok := m[name]
	delete(m, name)
	return raw, ok && raw.Kind() != 'n'
}

// verdict reads the members about the whole change.
func (r *Result) verdict(top members) {
	var f faults
	word := f.text(top, "overall_correctness", maxTitle)
	v := &protocol.Verdict{Explanation: f.text(top, "overall_explanation", maxBody), Confidence: f.score(top, "overall_confidence_score")}
	switch word {
	case "patch is correct":
		v.Correct = true
	case "patch is incorrect":
	default:
		if word != "" {
			f.add("overall_correctness", fmt.Sprintf("%.100q is neither %q nor %q", word, "patch is correct", "patch is incorrect"))
		}
		if v.Explanation != "" {
			f = append(f, "the reviewer says: "+v.Explanation)
		}
		v = nil
	}
	r.Verdict = v
	if len(f) > 0 {
		r.Problems = append(r.Problems, "About the verdict: "+f.String()+".")
	}
}

// finding reads one finding.
func finding(raw jsontext.Value) (r protocol.Finding) {
	var f faults
	defer func() { r.Error = f.String() }()
	m, ok := f.object(raw)
	if !ok {
		return r
	}
	r.Title, r.Body = f.text(m, "title", maxTitle), f.text(m, "body", maxBody)
	if raw, ok := take(m, "priority"); ok {
		var n int
		if err := json.Unmarshal(raw, &n); err != nil || n < 0 || n > 3 {
			f.add("priority", fmt.Sprintf("%.40s is not 0, 1, 2 or 3", raw))
		} else {
			r.Priority = &n
		}
	}
	r.Confidence = f.score(m, "confidence_score")
	if raw, ok := take(m, "code_location"); ok {
		f.location(&r, raw)
	} else {
		f.add("code_location", "missing")
	}
	f.unknown(m)
	return r
}

// faults collects the faults of members.
type faults []string

// maxFaults bounds the faults reported for one finding.
const maxFaults = 10

func (f *faults) add(name, what string) {
	if len(*f) < maxFaults {
		*f = append(*f, name+": "+strings.ToValidUTF8(what, "\uFFFD"))
	}
}

// String returns the faults as one line.
func (f faults) String() string { return strings.Join(f, "; ") }

func (f *faults) object(raw jsontext.Value) (m members, ok bool) {
	if raw.Kind() != '{' || json.Unmarshal(raw, &m) != nil {
		f.add("finding", fmt.Sprintf("%.40s is not an object", raw))
		return nil, false
	}
	return m, true
}

// text reads a required string.
func (f *faults) text(m members, name string, most int) (s string) {
	raw, ok := take(m, name)
	if !ok {
		f.add(name, "missing")
		return ""
	}
	if raw.Kind() != '"' || json.Unmarshal(raw, &s) != nil {
		f.add(name, "not a string")
		return ""
	}
	return text.Brief(s, most)
}

// score reads a number from 0 to 1.
func (f *faults) score(m members, name string) *float64 {
	raw, ok := take(m, name)
	if !ok {
		return nil
	}
	var x float64
	if err := json.Unmarshal(raw, &x); err != nil || math.IsNaN(x) || x < 0 || x > 1 {
		f.add(name, fmt.Sprintf("%.40s is not a number from 0 to 1", raw))
		return nil
	}
	return &x
}

// location reads the file and the lines of a finding.
func (f *faults) location(r *protocol.Finding, raw jsontext.Value) {
	m, ok := f.object(raw)
	if !ok {
		return
	}
	r.Path = f.text(m, "absolute_file_path", maxPath)
	lines, ok := take(m, "line_range")
	if !ok {
		f.add("line_range", "missing")
	} else if lr, ok := f.object(lines); ok {
		start, end := f.number(lr, "start"), f.number(lr, "end")
		switch {
		case start == 0 || end == 0:
		case start > end:
			f.add("line_range", fmt.Sprintf("it begins at %d and ends at %d", start, end))
		default:
			r.StartLine, r.EndLine = start, end
		}
		f.unknown(lr)
	}
	f.unknown(m)
}

// number reads a line number. It returns 0 for anything else.
func (f *faults) number(m members, name string) (n int) {
	raw, ok := take(m, name)
	if err := json.Unmarshal(raw, &n); !ok || err != nil || n < 1 || n > maxLine {
		f.add(name, fmt.Sprintf("%.40s is not a line number", raw))
		return 0
	}
	return n
}

// unknown adds a fault for each member that was not taken.
func (f *faults) unknown(m members) {
	for _, name := range slices.Sorted(maps.Keys(m)) {
		f.add(fmt.Sprintf("%.40q", name), "no such member")
	}
}

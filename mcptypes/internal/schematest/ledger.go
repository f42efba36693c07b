package schematest

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/codexmcp/codexmcp/mcptypes"
	"github.com/go-json-experiment/json/jsontext"
)

// example is one instance of a definition, judged by the schema.
type example struct {
	Def      string
	Valid    bool
	Path     string // where it is invalid
	Kind     string
	Instance json.RawMessage
}

// deviation is one rule of the ledger, deviations.json: decoding differs from the schema on purpose. A rule excuses the
// examples whose definition, kind and path match its patterns, in its mode: lenient, refused or path.
type deviation struct {
	Rule, Effect, Reason   string
	Mode                   string
	Definition, Kind, Path *regexp.Regexp
}

// matches reports whether s matches a pattern; nil is the pattern of anything.
func matches(pattern *regexp.Regexp, s string) bool { return pattern == nil || pattern.MatchString(s) }

type ledger []deviation

func (p *Package) readLedger(t *testing.T) (l ledger) {
	text, err := os.ReadFile(filepath.Join(filepath.Dir(p.Schemas[0]), "deviations.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &l); err != nil {
		t.Fatal(err)
	}
	for _, d := range l {
		if d.Rule == "" || d.Effect == "" || d.Reason == "" || d.Mode == "" {
			t.Fatalf("rule %q of the ledger is incomplete", d.Rule)
		}
	}
	return l
}

func (l ledger) excuses(mode string, e example, path string) string {
	for _, d := range l {
		if d.Mode == mode && matches(d.Definition, e.Def) && matches(d.Kind, e.Kind) && matches(d.Path, path) {
			return d.Rule
		}
	}
	return ""
}

// PathOf returns the path of a DecodeError, or that of the package which saw that the text is no value.
func PathOf(err error) string {
	if at, ok := errors.AsType[*mcptypes.DecodeError](err); ok {
		return at.Path
	}
	if at, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return string(at.JSONPointer)
	}
	return "no DecodeError"
}

package schematest

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/mcptypes"
	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
)

func (p *Package) readExamples(t *testing.T) []example {
	f, err := os.Open(p.Examples)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // a new version need not have any
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var list []example
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e example
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		if p.Definitions[e.Def] == nil { // the package has no types of whole messages
			e = e.params()
		}
		if p.Definitions[e.Def] != nil {
			list = append(list, e)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return list
}

// params returns the example of a message's params, if it says something about them.
func (e example) params() (params example) {
	var message map[string]json.RawMessage
	path, inside := strings.CutPrefix(e.Path, "/params")
	if err := json.Unmarshal(e.Instance, &message); err != nil || message["params"] == nil || !e.Valid && !inside ||
		path == "" && e.Kind == "duplicate-member" {
		return example{}
	}
	return example{Def: e.Def + "/params", Valid: e.Valid, Path: path, Kind: e.Kind, Instance: message["params"]}
}

// TestExamples decodes each example and compares the result with the schema's verdict. A valid example must be encoded to
// an equal value, an invalid one refused at its path, unless a rule of the ledger excuses it.
func (p *Package) TestExamples(t *testing.T) {
	ledger := p.readLedger(t)
	excused := make(map[string]int)
	excuse := func(mode string, e example, path string) bool {
		rule := ledger.excuses(mode, e, path)
		excused[rule]++
		return rule != ""
	}
	var valid, invalid int
	for _, e := range p.readExamples(t) {
		v := p.Definitions[e.Def]()
		lenient := p.Decode(e.Instance, v)
		strict := p.DecodeStrict(e.Instance, p.Definitions[e.Def]())
		bothPackagesAgree(t, p.Definitions[e.Def], e.Instance, lenient)
		if e.Valid {
			valid++
			if lenient != nil {
				if !excuse("refused", e, PathOf(lenient)) {
					t.Errorf("%s %s %s: %v", e.Def, e.Kind, e.Instance, lenient)
				}
				continue
			}
			if strict != nil && !excuse("refused", e, PathOf(strict)) {
				t.Errorf("%s %s %s: strict: %v", e.Def, e.Kind, e.Instance, strict)
			}
			got, err := p.Encode(Value(v))
			if err != nil {
				t.Errorf("%s %s %s: encode: %v", e.Def, e.Kind, e.Instance, err)
				continue
			}
			if diff := DiffJSON(t, string(e.Instance), string(got)); diff != "" &&
				(strict == nil || !excuse("lenient", e, PathOf(strict))) {
				t.Errorf("%s %s: (-want +got)\n%s", e.Def, e.Kind, diff)
			}
			continue
		}
		invalid++
		if path := PathOf(strict); path != e.Path && !(strict != nil && excuse("path", e, path)) {
			t.Errorf("%s %s %s: strict: %v, want an error at %q", e.Def, e.Kind, e.Instance, strict, e.Path)
		}
		if lenient == nil && !excuse("lenient", e, e.Path) {
			t.Errorf("%s %s %s: accepted, want an error at %q", e.Def, e.Kind, e.Instance, e.Path)
		}
	}
	t.Logf("%d valid, %d invalid, excused by the ledger: %v", valid, invalid, excused)
}

// typedNumbers are the members whose numbers have a Go type, so that 1.0 may be written as
// 1; "" is the root. All other numbers keep their text.
var typedNumbers = map[string]bool{
	"id": true, "requestId": true, "progressToken": true, "code": true, "size": true, "maxTokens": true, "total": true,
	"progress": true, "temperature": true, "priority": true, "costPriority": true, "speedPriority": true,
	"intelligencePriority": true, "lives": true, "weight": true, "key": true, "minimum": true, "maximum": true,
	"minLength": true, "maxLength": true, "": true,
	"ttl": true, "ttlMs": true, "pollInterval": true, "pollIntervalMs": true, "minItems": true, "maxItems": true,
	"default":                                true,
	"io.modelcontextprotocol/subscriptionId": true,
}

// DiffJSON compares JSON values; "" means that they are the same.
func DiffJSON(t *testing.T, want, got string) string {
	return cmp.Diff(Parse(t, want), Parse(t, got), cmp.FilterPath(func(p cmp.Path) bool {
		for i := len(p) - 1; i >= 0; i-- {
			if m, ok := p[i].(cmp.MapIndex); ok {
				return typedNumbers[m.Key().String()]
			}
		}
		return true
	}, cmp.Comparer(func(a, b json.Number) bool {
		x, ok1 := new(big.Rat).SetString(string(a))
		y, ok2 := new(big.Rat).SetString(string(b))
		return ok1 && ok2 && x.Cmp(y) == 0
	})))
}

// bothPackagesAgree checks that encoding/json and json/v2 accept what Decode accepts, and refuse it at the same place.
func bothPackagesAgree(t *testing.T, make func() any, in []byte, err error) {
	v1, v2 := make(), make()
	if _, ok := v1.(json.Unmarshaler); !ok {
		return // an interface has no methods to decode with
	}
	for name, other := range map[string]error{"encoding/json": json.Unmarshal(in, v1),
		"json/v2": jsonv2.Unmarshal(in, v2)} {
		if (err == nil) != (other == nil) || err != nil && json.Valid(in) && PathOf(err) != PathOf(other) {
			t.Fatalf("%s: Decode: %v, %s: %v", in, err, name, other)
		}
	}
}

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

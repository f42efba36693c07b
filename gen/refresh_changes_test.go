package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var wholeChanges = flag.Bool("whole", false, "compile and test the package of each change to a schema")

// change is what upstream might do to the newest schema.
type change struct {
	name   string
	edits  []edit
	byHand string // the compiler's error in a file that is written by hand, "" if there is none
}

// edit sets a value of a schema, removes it (json is "") or, with to, renames a definition.
type edit struct{ at, json, to string }

// changes are changes of the schema of 2026-07-28. Many are of definitions that the tasks extension copies.
var changes = []change{
	{name: "optional member", edits: []edit{{at: "Tool/properties/version", json: `{"type":"string"}`}}},
	{name: "required member", edits: []edit{{at: "Root/properties/kind", json: `{"type":"string"}`}, {at: "Root/required", json: `["uri","kind"]`}}},
	{name: "member of a result", edits: []edit{{at: "CallToolResult/properties/cost", json: `{"type":"number"}`}}},
	{name: "member of params", edits: []edit{{at: "CallToolRequestParams/properties/deadline", json: `{"type":"integer"}`}}},
	{name: "member with a new definition", edits: []edit{{at: "Tool/properties/owner", json: `{"$ref":"#/$defs/Owner"}`}, {at: "Owner", json: `{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`}}},
	{name: "member of an inline type", edits: []edit{{at: "Root/properties/limits", json: `{"type":"object","properties":{"files":{"type":"integer"}}}`}}},
	{name: "member removed", edits: []edit{{at: "Icon/properties/theme"}}},
	{name: "guarded member removed", edits: []edit{{at: "ElicitResult/properties/content"}}},
	{name: "member that tells an arm removed", edits: []edit{{at: "ListRootsResult/properties/roots"}, {at: "ListRootsResult/required"}}},
	{name: "member renamed", edits: []edit{{at: "Icon/properties/sizes"}, {at: "Icon/properties/size", json: `{"type":"string"}`}}},
	{name: "guarded member renamed", edits: []edit{{at: "ElicitResult/properties/action"}, {at: "ElicitResult/properties/decision", json: `{"type":"string","enum":["accept","cancel","decline"]}`}, {at: "ElicitResult/required", json: `["decision"]`}}},
	{name: "optional becomes required", edits: []edit{{at: "Root/required", json: `["uri","name"]`}}},
	{name: "required becomes optional", edits: []edit{{at: "Implementation/required", json: `["name"]`}}},
	{name: "all members optional", edits: []edit{{at: "Icon/required"}}},
	{name: "enum value", edits: []edit{{at: "Role/enum", json: `["assistant","user","system"]`}}},
	{name: "enum value of an answer", edits: []edit{{at: "ElicitResult/properties/action/enum", json: `["accept","cancel","decline","later"]`}}},
	{name: "enum value removed", edits: []edit{{at: "LoggingLevel/enum", json: `["error","info"]`}}},
	{name: "enum becomes text", edits: []edit{{at: "Role/enum"}}},
	{name: "text becomes enum", edits: []edit{{at: "ResultType/enum", json: `["complete","input_required"]`}}, byHand: "result.go:6:2: other declaration of ResultTypeComplete"},
	{name: "constant changed", edits: []edit{{at: "TextContent/properties/type/const", json: `"txt"`}}},
	{name: "constant becomes text", edits: []edit{{at: "AudioContent/properties/type/const"}}},
	{name: "definition renamed", edits: []edit{{at: "Icon", to: "Symbol"}}},
	{name: "answer renamed", edits: []edit{{at: "ElicitResult", to: "ElicitAnswer"}}},
	{name: "arm renamed", edits: []edit{{at: "TextContent", to: "PlainContent"}}, byHand: "content.go:7:16: undefined: TextContent"},
	{name: "union renamed", edits: []edit{{at: "ClientRequest", to: "CallerRequest"}}},
	{name: "definition that the extension needs renamed", edits: []edit{{at: "InputRequests", to: "Questions"}}},
	{name: "definition that Go has by hand renamed", edits: []edit{{at: "RequestId", to: "MessageId"}}},
	{name: "definition removed", edits: []edit{{at: "HeaderMismatchError"}}},
	{name: "definition removed, its references left", edits: []edit{{at: "Icon"}}},
	{name: "definition named as the extension's", edits: []edit{{at: "Task", json: `{"type":"object","properties":{"id":{"type":"string"}},"required":["id"]}`}}},
	{name: "definition with a name that Go has", edits: []edit{{at: "String", json: `{"type":"string"}`}}},
	{name: "type of a member", edits: []edit{{at: "Annotations/properties/priority", json: `{"type":"string"}`}}},
	{name: "type of a number", edits: []edit{{at: "NumberSchema/properties/minimum/type", json: `"integer"`}}},
	{name: "text becomes a list", edits: []edit{{at: "Icon/properties/mimeType", json: `{"type":"array","items":{"type":"string"}}`}}},
	{name: "id becomes a text", edits: []edit{{at: "RequestId/type", json: `"string"`}}},
	{name: "member becomes null too", edits: []edit{{at: "Icon/properties/mimeType/type", json: `["string","null"]`}}},
	{name: "object becomes closed", edits: []edit{{at: "Root/additionalProperties", json: `false`}}},
	{name: "pattern", edits: []edit{{at: "Root/properties/uri/pattern", json: `"^file:"`}}},
	{name: "pattern that Go lacks", edits: []edit{{at: "Root/properties/uri/pattern", json: `"^(?!http)"`}}},
	{name: "length beside a reference", edits: []edit{{at: "Tool/properties/annotations/minProperties", json: `1`}}},
	{name: "values beside a reference", edits: []edit{{at: "SamplingMessage/properties/role/enum", json: `["user"]`}}},
	{name: "minimum", edits: []edit{{at: "ModelPreferences/properties/costPriority/minimum", json: `0.5`}}},
	{name: "arm added", edits: []edit{{at: "ContentBlock/anyOf/5", json: `{"$ref":"#/$defs/VideoContent"}`}, {at: "VideoContent", json: `{"type":"object","properties":{"type":{"type":"string","const":"video"},"url":{"type":"string"}},"required":["type","url"]}`}}},
	{name: "arm that nothing tells", edits: []edit{{at: "ContentBlock/anyOf/5", json: `{"$ref":"#/$defs/Implementation"}`}}},
	{name: "arm with the tag of another", edits: []edit{{at: "ContentBlock/anyOf/5", json: `{"$ref":"#/$defs/RichContent"}`}, {at: "RichContent", json: `{"type":"object","properties":{"type":{"type":"string","const":"text"},"html":{"type":"string"}},"required":["type","html"]}`}}},
	{name: "arm removed", edits: []edit{{at: "ContentBlock/anyOf/4"}}},
	{name: "method", edits: []edit{
		{at: "ClientRequest/anyOf/10", json: `{"$ref":"#/$defs/NoteRequest"}`},
		{at: "NoteRequest", json: `{"type":"object","properties":{"id":{"$ref":"#/$defs/RequestId"},"jsonrpc":{"type":"string","const":"2.0"},"method":{"type":"string","const":"notes/take"},"params":{"$ref":"#/$defs/RequestParams"}},"required":["id","jsonrpc","method","params"]}`},
		{at: "NoteResult", json: `{"type":"object","properties":{"note":{"type":"string"}},"required":["note"]}`},
		{at: "ServerResult/anyOf/12", json: `{"$ref":"#/$defs/NoteResult"}`}}},
	{name: "method whose result no union has", edits: []edit{
		{at: "ClientRequest/anyOf/10", json: `{"$ref":"#/$defs/NoteRequest"}`},
		{at: "NoteRequest", json: `{"type":"object","properties":{"id":{"$ref":"#/$defs/RequestId"},"jsonrpc":{"type":"string","const":"2.0"},"method":{"type":"string","const":"notes/take"},"params":{"$ref":"#/$defs/RequestParams"}},"required":["id","jsonrpc","method","params"]}`},
		{at: "NoteResult", json: `{"type":"object","properties":{"note":{"type":"string"}},"required":["note"]}`}}},
	{name: "method without a result", edits: []edit{
		{at: "ClientRequest/anyOf/10", json: `{"$ref":"#/$defs/NoteRequest"}`},
		{at: "NoteRequest", json: `{"type":"object","properties":{"id":{"$ref":"#/$defs/RequestId"},"jsonrpc":{"type":"string","const":"2.0"},"method":{"type":"string","const":"notes/take"},"params":{"$ref":"#/$defs/RequestParams"}},"required":["id","jsonrpc","method","params"]}`}}},
	{name: "method that no union has", edits: []edit{
		{at: "NoteRequest", json: `{"type":"object","properties":{"id":{"$ref":"#/$defs/RequestId"},"jsonrpc":{"type":"string","const":"2.0"},"method":{"type":"string","const":"notes/take"},"params":{"$ref":"#/$defs/RequestParams"}},"required":["id","jsonrpc","method","params"]}`},
		{at: "NoteResult", json: `{"type":"object","properties":{"note":{"type":"string"}},"required":["note"]}`}}},
	{name: "method renamed", edits: []edit{{at: "ListToolsRequest/properties/method/const", json: `"tools/all"`}}},
	{name: "two requests with one method", edits: []edit{{at: "ListToolsRequest/properties/method/const", json: `"prompts/list"`}}},
	{name: "notification", edits: []edit{
		{at: "ServerNotification/anyOf/8", json: `{"$ref":"#/$defs/NoteNotification"}`},
		{at: "NoteNotification", json: `{"type":"object","properties":{"jsonrpc":{"type":"string","const":"2.0"},"method":{"type":"string","const":"notifications/note"},"params":{"$ref":"#/$defs/NotificationParams"}},"required":["jsonrpc","method"]}`}}},
	{name: "unknown keyword", edits: []edit{{at: "Tool/$dynamicRef", json: `"#x"`}}},
	{name: "prose in a new place", edits: []edit{{at: "Icon/properties/src/format", json: `"as one pleases"`}}},
}

// apply returns the schema after a change.
func (c change) apply(t *testing.T, text []byte) []byte {
	for _, e := range c.edits {
		var tree map[string]any
		if err := json.Unmarshal(text, &tree); err != nil {
			t.Fatal(err)
		}
		definitions := tree["$defs"].(map[string]any)
		if e.to != "" {
			definitions[e.to] = definitions[e.at]
			delete(definitions, e.at)
			text = []byte(strings.ReplaceAll(compact(tree), `"#/$defs/`+e.at+`"`, `"#/$defs/`+e.to+`"`))
			continue
		}
		var value any
		if e.json != "" {
			if err := json.Unmarshal([]byte(e.json), &value); err != nil {
				t.Fatal(err)
			}
		}
		e.set(t, definitions, value)
		text = []byte(compact(tree))
	}
	return text
}

func (e edit) set(t *testing.T, definitions map[string]any, value any) {
	parts := strings.Split(e.at, "/")
	var put func(node any, parts []string) any
	put = func(node any, parts []string) any {
		if len(parts) == 0 {
			return value
		}
		switch node := node.(type) {
		case map[string]any:
			child, there := node[parts[0]]
			if len(parts) > 1 || value != nil {
				node[parts[0]] = put(child, parts[1:])
			} else if delete(node, parts[0]); !there {
				t.Fatalf("%s is not there", e.at)
			}
			return node
		case []any:
			i, err := strconv.Atoi(parts[0])
			switch {
			case err != nil || i > len(node):
				t.Fatalf("%s: %v", e.at, err)
			case value == nil:
				return append(node[:i:i], node[i+1:]...)
			case i == len(node):
				return append(node, value)
			}
			node[i] = put(node[i], parts[1:])
			return node
		}
		t.Fatalf("%s is not there", e.at)
		return nil
	}
	put(definitions, parts)
}

// modernProject copies the newest package, its schema and that of its extension into a module of its own.
func modernProject(t *testing.T) (r refresher, dir string, report *bytes.Buffer) {
	r, dir, report = copyProject(t)
	for _, pattern := range []string{"mcptypes/modern/*.go", "schema/2026-07-28/*"} {
		names, err := filepath.Glob("../" + pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			writeFile(t, filepath.Join(dir, strings.TrimPrefix(filepath.ToSlash(name), "../")), readFile(t, name))
		}
	}
	r.base, r.schema = r.schema, filepath.Join(dir, "schema/2026-07-28/schema.json")
	r.extensions = []string{filepath.Join(dir, "schema/2026-07-28/tasks.json")}
	r.out = filepath.Join(dir, "mcptypes/modern")
	return r, dir, report
}

// TestRefreshOfChanges makes each change to the newest schema, and compares what a refresh says with
// testdata/changes.txt: the differences of the Go API, or the reason why it refuses. With -whole it also
// generates each package that is not refused, compiles it and runs its tests, which compare it with an
// independent validator of the changed schema.
func TestRefreshOfChanges(t *testing.T) {
	r, dir, _ := modernProject(t)
	text := upstream(t, "2026-07-28")
	was, err := r.model(readFile(t, r.schema))
	if err != nil {
		t.Fatal(err)
	}
	r.was = was
	results := make([]string, len(changes))
	t.Run("changes", func(t *testing.T) {
		for i, c := range changes {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				version := time.Date(2027, 1, 1+i, 0, 0, 0, 0, time.UTC).Format(time.DateOnly)
				results[i] = fmt.Sprintf("# %s\n%s\n", c.name, c.refresh(t, r, dir, version, text))
			})
		}
	})
	table := strings.Join(results, "")
	golden := filepath.Join("testdata", "changes.txt")
	if *update {
		writeFile(t, golden, []byte(table))
		return
	}
	if diff := cmp.Diff(string(readFile(t, golden)), table); diff != "" {
		t.Errorf("%s (-want +got); -update rewrites it\n%s", golden, diff)
	}
}

// refresh returns what a refresh to the changed schema says, or why it refuses, in which case it must
// have written nothing.
func (c change) refresh(t *testing.T, r refresher, dir, version string, text []byte) string {
	source := filepath.Join(dir, "upstream", version, "schema.json")
	writeFile(t, source, c.apply(t, text))
	var report bytes.Buffer
	r.report, r.dryRun = &report, !*wholeChanges
	if err := r.refresh(t.Context(), source); err != nil {
		for _, name := range []string{"schema/" + version, "mcptypes/v" + strings.ReplaceAll(version, "-", "")} {
			if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
				t.Errorf("refused, but %s was written", name)
			}
		}
		return fmt.Sprintf("refused: %v\n", err)
	}
	said, _, _ := strings.Cut(report.String(), "upstream's commit is not known")
	if strings.HasPrefix(said, "schema: 0\n") {
		t.Error("the refresh sees no change")
	}
	if !*wholeChanges {
		return said
	}
	pkg := "./mcptypes/v" + strings.ReplaceAll(version, "-", "")
	if c.byHand == "" {
		goRun(t, dir, "vet", "-trimpath", pkg)
		goRun(t, dir, "test", "-trimpath", "-vet=off", pkg, "-roundtrips", strconv.Itoa(*roundTrips))
		return said
	}
	cmd := exec.CommandContext(t.Context(), "go", "test", "-trimpath", pkg)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off")
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), c.byHand) {
		t.Errorf("%v, want %q:\n%s", err, c.byHand, out)
	}
	return said
}

// TestRefreshFollowsCopies writes a changed schema. The extension's copies change with it, so that go
// generate makes the same package from the files. Afterwards a refresh refuses upstream's extension, whose
// copies are those of the old schema.
func TestRefreshFollowsCopies(t *testing.T) {
	r, dir, report := modernProject(t)
	tasks := r.extensions[0]
	source := filepath.Join(dir, "upstream.json")
	writeFile(t, source, change{edits: []edit{
		{at: "Tool/properties/owner", json: `{"$ref":"#/$defs/Owner"}`},
		{at: "Owner", json: `{"type":"object","properties":{"name":{"type":"string"}}}`},
	}}.apply(t, upstream(t, "2026-07-28")))
	if err := r.refresh(t.Context(), source); err != nil {
		t.Fatal(err)
	}
	var was, is any
	if err := json.Unmarshal(upstream(t, "tasks"), &was); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(readFile(t, tasks), &is); err != nil {
		t.Fatal(err)
	}
	want := []string{
		`+ #/$defs/Owner {"properties":{"name":{"type":"string"}},"type":"object"}`,
		`+ #/$defs/Tool/properties/owner {"$ref":"#/$defs/Owner"}`,
	}
	if diff := cmp.Diff(want, diffSchemas(was, is)); diff != "" {
		t.Errorf("tasks.json (-want +got)\n%s", diff)
	}
	if err := run([]string{"-check", "-schema", r.schema, "-extension", tasks, "-base", r.base, "-out", r.out}, report); err != nil {
		t.Error(err)
	}

	before := readFile(t, tasks)
	writeFile(t, source, upstream(t, "tasks"))
	err := refresher{project: project{schema: tasks}, report: report}.refresh(t.Context(), source)
	if err == nil || !strings.HasPrefix(err.Error(), "Tool: the extension's copy differs from the definition in ") {
		t.Errorf("a refresh of the extension: %v", err)
	}
	if !bytes.Equal(before, readFile(t, tasks)) {
		t.Error("the extension was written although the refresh failed")
	}
}

// TestRefreshKeepsAnotherVersion refreshes with the schema of a version that has a package: its
// descriptions must not be replaced by those of the version that the flags name.
func TestRefreshKeepsAnotherVersion(t *testing.T) {
	r, dir, report := modernProject(t)
	source := filepath.Join(dir, "upstream/2026-07-28/schema.json")
	writeFile(t, source, upstream(t, "2026-07-28"))
	schema := r.schema
	before := readFile(t, schema)
	r = refresher{project: project{schema: r.base, out: filepath.Dir(r.out)}, report: report}
	if err := r.refresh(t.Context(), source); err == nil || !strings.HasPrefix(err.Error(), schema+" is there: ") {
		t.Errorf("got %v", err)
	}
	if !bytes.Equal(before, readFile(t, schema)) {
		t.Error("the schema was written")
	}
}

package main

import (
	"encoding/json"
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const wireFolder = "../codexserver/appserver/apptypes"

// next is a schema of Codex that a row changes.
type next map[string]any

// part returns a definition, or the arm DEFINITION:TAG of one.
func (n next) part(source string) map[string]any {
	name, tag, isArm := strings.Cut(source, ":")
	node := n[name]
	if isArm {
		_, node = armOf(node, tag)
	}
	return node.(map[string]any)
}

func (n next) rename(source, from, to string) {
	d := n.part(source)
	members := objectMembers(d)
	members[to] = members[from]
	delete(members, from)
	for i, name := range listOf(d, "required") {
		if name == from {
			listOf(d, "required")[i] = to
		}
	}
}

func (n next) add(source, name, schema string, required bool) {
	d := n.part(source)
	objectMembers(d)[name] = parse(schema)
	if required {
		d["required"] = append(listOf(d, "required"), name)
	}
}

func (n next) addArm(name, schema string) {
	n.part(name)["oneOf"] = append(listOf(n[name], "oneOf"), parse(schema))
}

// replace replaces text in a definition, or drops the arms that contain it if to is "".
func (n next) replace(name, from, to string) {
	if to == "" {
		arms := listOf(n[name], "oneOf")
		n.part(name)["oneOf"] = slices.DeleteFunc(arms, func(arm any) bool { return strings.Contains(compact(arm), from) })
		return
	}
	n[name] = parse(strings.ReplaceAll(compact(n[name]), from, to))
}

// move renames a definition, with all references.
func (n next) move(from, to string) {
	all := parse(strings.ReplaceAll(compact(map[string]any(n)), `"#/definitions/`+from+`"`, `"#/definitions/`+to+`"`)).(map[string]any)
	clear(n)
	maps.Copy(n, all)
	n[to] = n[from]
	delete(n, from)
}

func parse(text string) (v any) {
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		panic(err)
	}
	return v
}

// TestNextCodex takes schemas of Codex that do not exist yet. The report must name each change.
// Then gen refuses the schema, or the bridge does not compile, or it compiles and works as it is;
// how it then reads messages of such a Codex, the tests of appserver show.
func TestNextCodex(t *testing.T) {
	t.Parallel()
	type row struct {
		name    string
		change  func(next)
		report  string // a line of the report has this
		refused string // gen refuses the schema with this
		build   string // the compiler refuses the bridge with this
	}
	const text, number = `{"type":"string"}`, `{"type":"integer","format":"int64"}`
	rows := []row{
		{"nothing", func(n next) {}, "", "", ""},
		{"a member of an answer is renamed", func(n next) { n.rename("Thread", "path", "rolloutPath") },
			`- #/$defs/Thread/properties/path {"type"`, "Thread/path: the member is gone", ""},
		{"a member of params is renamed", func(n next) { n.rename("ThreadStartParams", "cwd", "folder") },
			`- #/$defs/ThreadStartParams/properties/cwd {"type"`, "ThreadStartParams/cwd: the member is gone", ""},
		{"a member of an item is renamed", func(n next) { n.rename("ThreadItem:fileChange", "changes", "edits") },
			"+ #/$defs/ThreadItem/oneOf/fileChange/properties/edits true", "ThreadItem:fileChange/changes: the member is gone", ""},
		{"a member that is not used is renamed", func(n next) { n.rename("Thread", "gitInfo", "git") },
			"- #/$defs/Thread/properties/gitInfo true", "", ""},
		{"params need a new member", func(n next) { n.add("TurnStartParams", "consent", text, true) },
			`+ #/$defs/TurnStartParams/required/* "consent"`, "TurnStartParams/consent: a required member that is not sent", ""},
		{"an arm of params needs a new member", func(n next) { n.add("UserInput:text", "language", text, true) },
			`+ #/$defs/UserInput/oneOf/text/required/* "language"`, "UserInput:text/language: a required member that is not sent", ""},
		{"an answer to a question needs a new member", func(n next) { n.add("FileChangeRequestApprovalResponse", "signature", text, true) },
			`+ #/$defs/FileChangeRequestApprovalResponse/required/* "signature"`, "a required member that is not sent", ""},
		{"params take a new member", func(n next) { n.add("TurnStartParams", "colour", text, false) },
			"+ #/$defs/TurnStartParams/properties/colour true", "", ""},
		{"a member of params becomes required", func(n next) {
			n.part("TurnStartParams")["required"] = append(listOf(n["TurnStartParams"], "required"), "personality")
		}, `+ #/$defs/TurnStartParams/required/* "personality"`, "TurnStartParams/personality: a required member that is not sent", ""},
		{"an answer has a new member", func(n next) { n.add("Turn", "cost", number, true) }, "+ #/$defs/Turn/properties/cost true", "", ""},
		{"a member of an answer becomes optional", func(n next) {
			n.part("Thread")["required"] = slices.DeleteFunc(listOf(n["Thread"], "required"), func(v any) bool { return v == "preview" })
		}, `- #/$defs/Thread/required/* "preview"`, "", ""},
		{"a new item", func(n next) {
			n.addArm("ThreadItem", `{"type":"object","properties":{"type":{"type":"string","enum":["hologram"]},"id":{"type":"string"}},"required":["id","type"]}`)
		}, "+ #/$defs/ThreadItem/oneOf/hologram {", "", ""},
		{"an item is gone", func(n next) { n.replace("ThreadItem", `"fileChange"`, "") },
			"- #/$defs/ThreadItem/oneOf/fileChange {", "ThreadItem:fileChange: the arm is gone", ""},
		{"an item that is not used is gone", func(n next) { n.replace("ThreadItem", `"sleep"`, "") },
			"- #/$defs/ThreadItem/oneOf/sleep {", "", ""},
		{"a method is gone", func(n next) { n.replace(allCalls, `"turn/steer"`, "") },
			"- #/$defs/ClientRequest/oneOf/turn/steer {", "turn/steer: the method is gone", ""},
		{"a method that is not used is gone", func(n next) { n.replace(allCalls, `"thread/goal/clear",`, ` `) }, `- #/$defs/ClientRequest/oneOf/method/properties/method/enum/* "thread/goal/clear"`, "", ""},
		{"the end of a turn is renamed", func(n next) { n.replace(allNotes, `"turn/completed"`, `"turn/ended"`) },
			`+ #/$defs/ServerNotification/oneOf/method/properties/method/enum/* "turn/ended"`, "turn/completed: the method is gone", ""},
		{"a new approval", func(n next) {
			n.addArm(allAsks, `{"properties":{"method":{"type":"string","enum":["item/hologram/requestApproval"]}}}`)
		}, `+ #/$defs/ServerRequest/oneOf/method/properties/method/enum/* "item/hologram/requestApproval"`, "", ""},
		{"an approval is renamed", func(n next) {
			n.replace(allAsks, `"item/fileChange/requestApproval"`, `"item/edit/requestApproval"`)
		}, "- #/$defs/ServerRequest/oneOf/item/fileChange/requestApproval {", "item/fileChange/requestApproval: the method is gone", ""},
		{"an approval has a new member", func(n next) { n.add("CommandExecutionRequestApprovalParams", "asRoot", `{"type":"boolean"}`, false) },
			"+ #/$defs/CommandExecutionRequestApprovalParams/properties/asRoot true", "CommandExecutionRequestApprovalParams/asRoot: a new member of a request", ""},
		{"a change of a file has a new member", func(n next) { n.add("FileUpdateChange", "mode", text, false) },
			"+ #/$defs/FileUpdateChange/properties/mode true", "FileUpdateChange/mode: a new member of a request", ""},
		{"a new kind of command", func(n next) { n.addArm("CommandExecutionApprovalKind", `{"type":"string","enum":["script"]}`) },
			"+ #/$defs/CommandExecutionApprovalKind/oneOf/script {", "", ""},
		{"a new kind of change", func(n next) {
			n.addArm("PatchChangeKind", `{"type":"object","properties":{"type":{"type":"string","enum":["symlink"]}},"required":["type"]}`)
		}, "+ #/$defs/PatchChangeKind/oneOf/symlink {", "", ""},
		{"a decision is gone", func(n next) { n.replace("FileChangeApprovalDecision", `"cancel"`, "") },
			"- #/$defs/FileChangeApprovalDecision/oneOf/cancel {", "", "FileChangeApprovalDecisionCancel"},
		{"a decision that is not used is gone", func(n next) { n.replace("FileChangeApprovalDecision", `"acceptForSession"`, "") },
			"- #/$defs/FileChangeApprovalDecision/oneOf/acceptForSession {", "", ""},
		{"a decision is another word", func(n next) { n.replace("CommandExecutionApprovalDecision", `"decline"`, `"refuse"`) },
			"+ #/$defs/CommandExecutionApprovalDecision/oneOf/refuse {", "", "CommandExecutionApprovalDecisionDecline"},
		{"a word of the sandbox is written otherwise", func(n next) { n.replace("SandboxMode", `"read-only"`, `"read_only"`) },
			`~ #/$defs/SandboxMode/enum/* "read-only" -> "read_only"`, "", "duplicate key false"},
		{"a number becomes a text", func(n next) { objectMembers(n.part("Thread"))["createdAt"] = parse(text) },
			`~ #/$defs/Thread/properties/createdAt/type "integer" -> "string"`, "", "time.Unix"},
		{"a text becomes an object", func(n next) {
			objectMembers(n.part("ThreadItem:commandExecution"))["command"] = parse(`{"type":"array","items":{"type":"string"}}`)
		}, `~ #/$defs/ThreadItem/oneOf/commandExecution/properties/command/type "string" -> "array"`, "", "o.Command"},
		{"an object becomes a choice", func(n next) {
			n["TurnError"] = map[string]any{"oneOf": []any{n["TurnError"], parse(`{"properties":{"type":{"type":"string","enum":["none"]}}}`)}}
		}, "+ #/$defs/TurnError/oneOf [", "TurnError: it is a choice now", ""},
		{"params are another definition", func(n next) { n.move("ThreadStartParams", "ThreadBeginParams") },
			`~ #/$defs/ClientRequest/oneOf/thread/start/properties/params/$ref "#/$defs/ThreadStartParams" -> "#/$defs/ThreadBeginParams"`, "thread/start: its params are ThreadBeginParams", ""},
		{"what is read by hand", func(n next) { n.replace("CodexErrorInfo", "httpStatusCode", "status") },
			`+ #/$defs/CodexErrorInfo/anyOf/* {"additionalProperties":false,"properties":{"httpConnectionFailed":{"properties":{"status":`, "", ""},
		{"a keyword that gen does not know", func(n next) { n.part("Thread")["mustHave"] = []any{"id"} }, "", `keyword "mustHave" is not known`, ""},
	}
	p := project{uses: filepath.Join(wireFolder, "uses.json"), schema: filepath.Join(wireFolder, "schema.json"), out: wireFolder}
	text2 := readFile(t, p.schema)
	c := newCompiler(t)
	old, err := structure(text2)
	if err != nil {
		t.Fatal(err)
	}
	was, words := canonical(old), strings.ReplaceAll(compact(old), "#/$defs/", "#/definitions/")
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			changed := next(parse(words).(map[string]any))
			row.change(changed)
			if (was == canonical(map[string]any(changed))) != (row.name == "nothing") {
				t.Fatal("the row changes nothing")
			}
			var report strings.Builder
			kept, err := refresher{project: p, report: &report}.compare(text2, []byte(compact(map[string]any{"definitions": changed})))
			if row.name == "nothing" && report.String() != "schema: 0\n" || !strings.Contains(report.String(), row.report) {
				t.Errorf("the report does not say %q:\n%s", row.report, &report)
			}
			if row.refused != "" {
				if err == nil || !strings.Contains(err.Error(), row.refused) {
					t.Errorf("error %v, want %q", err, row.refused)
				}
				return
			}
			if err != nil {
				t.Fatalf("%v\n%s", err, &report)
			}
			files, err := p.generate(kept)
			if err != nil {
				t.Fatal(err)
			}
			if row.name == "nothing" {
				for name, text := range files {
					if is, err := os.ReadFile(filepath.Join(wireFolder, name)); err != nil || string(is) != string(text) {
						t.Errorf("%s differs, %v", name, err)
					}
				}
				return
			}
			if errs := c.check(t, files); errs != "" && row.build == "" || !strings.Contains(errs, row.build) {
				t.Errorf("the compiler says %q, want %q", errs, row.build)
			}
		})
	}
}

// compiler checks the types of the bridge, and of the client that it uses, with other files of their package of types.
type compiler struct {
	fset     *token.FileSet
	sources  map[string][]*ast.File
	compiled types.Importer // has the other packages
}

const (
	module = "github.com/codexmcp/codexmcp/"
	bridge = "codexserver/appserver"
	client = bridge + "/appclient"
)

func newCompiler(t *testing.T) *compiler {
	t.Helper()
	c := &compiler{fset: token.NewFileSet(), sources: map[string][]*ast.File{}}
	out, err := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps", "-f", "{{.ImportPath}}={{.Export}}", module+bridge).Output()
	if err != nil {
		t.Fatal(err)
	}
	exports := map[string]string{} // files by path
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), "=")
		exports[path] = file
	}
	c.compiled = importer.ForCompiler(c.fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	for _, path := range []string{client, bridge} {
		dir := "../" + path
		p, err := build.ImportDir(dir, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range p.GoFiles {
			c.sources[path] = append(c.sources[path], c.parse(t, filepath.Join(dir, name), nil))
		}
	}
	return c
}

func (c *compiler) parse(t *testing.T, name string, text []byte) *ast.File {
	t.Helper()
	var source any
	if text != nil {
		source = text
	}
	f, err := parser.ParseFile(c.fset, name, source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// check returns the errors of the compiler.
func (c *compiler) check(t *testing.T, files map[string][]byte) string {
	t.Helper()
	var all []string
	config := types.Config{
		Importer: c.compiled,
		Error:    func(err error) { all = append(all, err.Error()) },
	}
	var generated []*ast.File
	for _, name := range slices.Sorted(maps.Keys(files)) {
		generated = append(generated, c.parse(t, name, files[name]))
	}
	const path = module + bridge + "/apptypes"
	wire, err := config.Check(path, c.fset, generated, nil)
	if err != nil {
		t.Fatal(err)
	}
	config.Importer = withPackage{config.Importer, wire}
	made, _ := config.Check(module+client, c.fset, c.sources[client], nil) // Error has the errors
	config.Importer = withPackage{config.Importer, made}
	_, _ = config.Check(module+bridge, c.fset, c.sources[bridge], nil)
	return strings.Join(all, "\n")
}

// withPackage imports a package in place of the compiled one.
type withPackage struct {
	types.Importer
	own *types.Package
}

func (w withPackage) Import(path string) (*types.Package, error) {
	if path == w.own.Path() {
		return w.own, nil
	}
	return w.Importer.Import(path)
}

//go:build realcodex

package apptypes_test

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/appserver/apptypes"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// definitions are the definitions of Codex's schema that each type is made of. A definition with several
// forms has all of them.
var definitions = []struct {
	typ any
	of  string
}{
	{apptypes.Account{}, "Account"}, {apptypes.AccountReply{}, "GetAccountResponse"},
	{apptypes.Capabilities{}, "InitializeCapabilities"}, {apptypes.ClientInfo{}, "ClientInfo"}, {apptypes.ConfigParams{}, "ConfigReadParams"},
	{apptypes.Decision{}, "FileChangeRequestApprovalResponse"}, {apptypes.InitializeParams{}, "InitializeParams"},
	{apptypes.InitializeReply{}, "InitializeResponse"}, {apptypes.InterruptParams{}, "TurnInterruptParams"}, {apptypes.LimitsReply{}, "GetAccountRateLimitsResponse"},
	{apptypes.ModelEffort{}, "ReasoningEffortOption"}, {apptypes.ModelsParams{}, "ModelListParams"}, {apptypes.PlanStep{}, "TurnPlanStep"},
	{apptypes.RateLimits{}, "RateLimitSnapshot"}, {apptypes.RateWindow{}, "RateLimitWindow"}, {apptypes.ThreadsParams{}, "ThreadListParams"},
	{apptypes.ThreadRef{}, "ThreadBackgroundTerminalsCleanParams ThreadReadParams"}, {apptypes.ThreadStatus{}, "ThreadStatus"},
	{apptypes.TokenCount{}, "TokenUsageBreakdown"}, {apptypes.TokenUsage{}, "ThreadTokenUsage"}, {apptypes.ToolError{}, "McpToolCallError"},
	{apptypes.Input{}, "UserInput"}, {apptypes.OverruleParams{}, "ThreadApproveGuardianDeniedActionParams"},
	{apptypes.Answers{}, "ToolRequestUserInputAnswer"}, {apptypes.CommandAction{}, "CommandAction"},
	{apptypes.CommandApproval{}, "CommandExecutionRequestApprovalParams"}, {apptypes.Decision{}, "CommandExecutionRequestApprovalResponse"},
	{apptypes.ConfigLayer{}, "ConfigLayer"}, {apptypes.ConfigReply{}, "ConfigReadResponse"}, {apptypes.Elicitation{}, "McpServerElicitationRequestParams"},
	{apptypes.ElicitationReply{}, "McpServerElicitationRequestResponse"}, {apptypes.FileApproval{}, "FileChangeRequestApprovalParams"},
	{apptypes.ExecParams{}, "CommandExecParams"}, {apptypes.ExecRef{}, "CommandExecTerminateParams"}, {apptypes.ExecReply{}, "CommandExecResponse"},
	{apptypes.Goal{}, "ThreadGoal"}, {apptypes.GoalParams{}, "ThreadGoalSetParams"}, {apptypes.GoalReply{}, "ThreadGoalGetResponse ThreadGoalSetResponse"},
	{apptypes.FileKind{}, "PatchChangeKind"}, {protocol.FuzzyFile{}, "FuzzyFileSearchResult"}, {apptypes.FileUpdate{}, "FileUpdateChange"},
	{apptypes.HookRun{}, "HookRunSummary"}, {apptypes.Item{}, "ThreadItem"}, {apptypes.Model{}, "Model"}, {apptypes.ModelsReply{}, "ModelListResponse"},
	{apptypes.Network{}, "NetworkApprovalContext"}, {apptypes.Permissions{}, "PermissionsRequestApprovalParams"},
	{apptypes.PermissionsReply{}, "PermissionsRequestApprovalResponse"}, {apptypes.Question{}, "ToolRequestUserInputQuestion"},
	{apptypes.QuestionOption{}, "ToolRequestUserInputOption"}, {apptypes.Review{}, "GuardianApprovalReview"}, {apptypes.ReviewAction{}, "GuardianApprovalReviewAction"},
	{apptypes.SandboxPolicy{}, "SandboxPolicy"}, {protocol.FuzzyFileSearchParams{}, "FuzzyFileSearchParams"},
	{protocol.FuzzyFileSearchResult{}, "FuzzyFileSearchResponse"}, {apptypes.SteerParams{}, "TurnSteerParams"}, {apptypes.Thread{}, "Thread"},
	{apptypes.ThreadParams{}, "ThreadStartParams ThreadResumeParams ThreadForkParams"},
	{apptypes.ThreadReply{}, "ThreadStartResponse ThreadResumeResponse ThreadForkResponse"},
	{apptypes.ThreadsReply{}, "ThreadListResponse"}, {apptypes.Turn{}, "Turn"}, {apptypes.TurnError{}, "TurnError"}, {apptypes.TurnParams{}, "TurnStartParams"}, {apptypes.TurnReply{}, "TurnStartResponse"},
	{apptypes.UserInput{}, "ToolRequestUserInputParams"},
	{apptypes.UserInputReply{}, "ToolRequestUserInputResponse"},
	{apptypes.Note{}, "AccountRateLimitsUpdatedNotification AgentMessageDeltaNotification CommandExecOutputDeltaNotification CommandExecutionOutputDeltaNotification " +
		"ConfigWarningNotification DeprecationNoticeNotification ErrorNotification GuardianWarningNotification HookCompletedNotification ItemCompletedNotification ItemGuardianApprovalReviewCompletedNotification " +
		"ItemGuardianApprovalReviewStartedNotification ItemStartedNotification McpServerStatusUpdatedNotification ModelReroutedNotification " +
		"ReasoningSummaryPartAddedNotification ReasoningSummaryTextDeltaNotification ReasoningTextDeltaNotification " +
		"ServerRequestResolvedNotification StrictReviewRequiredNotification ThreadGoalUpdatedNotification ThreadTokenUsageUpdatedNotification TurnCompletedNotification TurnDiffUpdatedNotification " +
		"TurnPlanUpdatedNotification TurnStartedNotification WarningNotification"},
}

// sent are the types that a client sends: they have each member that the schema requires.
var sent = []any{
	apptypes.Capabilities{}, apptypes.ClientInfo{}, apptypes.ConfigParams{}, apptypes.InitializeParams{},
	apptypes.InterruptParams{}, apptypes.ModelsParams{}, apptypes.ThreadsParams{}, apptypes.ThreadRef{}, apptypes.Decision{},
	apptypes.Answers{}, apptypes.Decision{}, apptypes.ElicitationReply{}, apptypes.OverruleParams{}, apptypes.PermissionsReply{},
	protocol.FuzzyFileSearchParams{}, apptypes.SteerParams{}, apptypes.TurnParams{}, apptypes.UserInputReply{}, apptypes.ThreadParams{},
	apptypes.ExecParams{}, apptypes.GoalParams{},
}

// TestRealSchema compares the types, methods and values of this package with the schema of the installed
// Codex. The schema of an older one may lack some; that of the newest has them all.
func TestRealSchema(t *testing.T) {
	s := schemaOf(t)
	for _, problem := range slices.Concat(s.members(), s.methods(t), s.values(t)) {
		t.Error(problem)
	}
}

// schema are the definitions of Codex's schema by name.
type schema map[string]any

// schemaText is the schema of the Codex that CODEX_BIN names.
var schemaText = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	cmd := exec.Command(os.Getenv("CODEX_BIN"), "app-server", "generate-json-schema", "--experimental", "--out", dir)
	cmd.Env = append(os.Environ(), "CODEX_HOME="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	return os.ReadFile(filepath.Join(dir, "codex_app_server_protocol.schemas.json"))
})

// schemaOf returns a copy of the schema, which a test may change.
func schemaOf(t *testing.T) schema {
	t.Helper()
	text := must.Get(schemaText())(t)
	var root struct {
		Definitions map[string]any `json:"definitions"`
	}
	must.OK(t, json.Unmarshal(text, &root))
	s := schema(root.Definitions)
	if v2, ok := root.Definitions["v2"].(map[string]any); ok { // those of the current protocol have a place of their own
		maps.Copy(s, v2)
	}
	return s
}

// follow returns a node with its references and its forms other than null resolved.
func (s schema) follow(node any) (all []map[string]any) {
	o, _ := node.(map[string]any)
	if ref, ok := o["$ref"].(string); ok {
		return s.follow(s[ref[strings.LastIndexByte(ref, '/')+1:]])
	}
	forms := 0
	for _, key := range []string{"anyOf", "oneOf", "allOf"} {
		arms, _ := o[key].([]any)
		for _, arm := range arms {
			all = append(all, s.follow(arm)...)
			forms++
		}
	}
	if o != nil && (forms == 0 || o["properties"] != nil) {
		all = append(all, o)
	}
	return all
}

// members compares the members of each type with those of its definitions.
func (s schema) members() (problems []string) {
	sends := map[reflect.Type]bool{}
	for _, v := range sent {
		sends[reflect.TypeOf(v)] = true
	}
	for _, row := range definitions {
		typ, names := reflect.TypeOf(row.typ), row.of
		have, whole := map[string]reflect.Type{}, false
		for f := range fields(typ) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "" {
				whole = true // what is not here is Unknown
				continue
			}
			have[name] = f.Type
		}
		found := map[string]bool{}
		for name := range strings.FieldsSeq(names) {
			if s[name] == nil {
				problems = append(problems, typ.Name()+": the schema has no "+name)
			}
			for _, form := range s.follow(s[name]) {
				properties, _ := form["properties"].(map[string]any)
				for member, node := range properties {
					goType, is := have[member]
					switch {
					case !is && whole:
						problems = append(problems, typ.Name()+": the member "+member+" of "+name+" is missing")
					case is && typ != reflect.TypeFor[apptypes.Item]():
						if kind := s.misfit(goType, node, sends[typ]); kind != "" {
							problems = append(problems, typ.Name()+": "+member+" of "+name+" is a "+kind)
						}
					}
					found[member] = true
				}
				required, _ := form["required"].([]any)
				for _, member := range required {
					if name, _ := member.(string); sends[typ] && have[name] == nil {
						problems = append(problems, typ.Name()+": the member "+name+" that "+names+" requires is missing")
					}
				}
			}
		}
		for member := range have {
			if !found[member] {
				problems = append(problems, typ.Name()+": "+member+" is no member of "+names)
			}
		}
	}
	return problems
}

func fields(typ reflect.Type) func(func(reflect.StructField) bool) {
	return func(yield func(reflect.StructField) bool) {
		for _, f := range reflect.VisibleFields(typ) {
			if !f.Anonymous && !yield(f) {
				return
			}
		}
	}
}

// misfit returns a JSON type that the schema allows and the Go type cannot have, or "". A value that is
// sent needs to have only one of them.
func (s schema) misfit(typ reflect.Type, node any, sent bool) (other string) {
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	want := map[reflect.Kind]string{
		reflect.String: "string", reflect.Bool: "boolean", reflect.Int64: "integer", reflect.Uint32: "integer", reflect.Slice: "array", reflect.Map: "object", reflect.Struct: "object",
	}[typ.Kind()]
	if typ == reflect.TypeFor[[]byte]() {
		want = "string" // in base64
	}
	if typ == reflect.TypeFor[json.RawMessage]() || typ.Kind() == reflect.Interface {
		return ""
	}
	for _, form := range s.follow(node) {
		var kinds []any
		switch kind := form["type"].(type) {
		case string:
			kinds = []any{kind}
		case []any:
			kinds = kind
		}
		for _, kind := range kinds {
			switch {
			case kind == want && sent:
				return ""
			case kind != want && kind != "null":
				other, _ = kind.(string)
			}
		}
	}
	return other
}

// all returns the texts of the keys const and enum below a node.
func (s schema) all(node any, under ...string) map[string]bool {
	texts := map[string]bool{}
	var walk func(node any, taken bool)
	walk = func(node any, taken bool) {
		switch node := node.(type) {
		case string:
			if taken {
				texts[node] = true
			}
		case []any:
			for _, v := range node {
				walk(v, taken)
			}
		case map[string]any:
			for key, v := range node {
				switch {
				case key == "enum" || key == "const":
					walk(v, true)
				case key == "properties" && len(under) > 0:
					properties, _ := v.(map[string]any)
					for _, name := range under {
						walk(properties[name], false)
					}
				case key == "properties": // an object with one member is a word with details
					properties, _ := v.(map[string]any)
					for name, member := range properties {
						if len(properties) == 1 {
							texts[name] = true
						}
						if name == "type" || name == "mode" {
							walk(member, false)
						}
					}
				case key != "description":
					walk(v, false)
				}
			}
		}
	}
	walk(node, false)
	return texts
}

// methods compares the names of methods. The file has those of the newest supported Codex that this package has no constant
// of: notifications that say nothing that a client needs, and requests that it refuses. A new one in the schema is looked
// at, and then stands there.
func (s schema) methods(t *testing.T) (problems []string) {
	unused := must.Get(os.ReadFile("testdata/unused.txt"))(t)
	for prefix, from := range map[string]string{"Call": "ClientRequest", "Ask": "ServerRequest", "Note": "ServerNotification"} {
		has, used := s.all(s[from], "method"), map[string]bool{}
		for name, value := range constants(t, "methods.go") {
			if used[value] = true; strings.HasPrefix(name, prefix) && !has[value] {
				problems = append(problems, name+": the schema has no "+strconv.Quote(value))
			}
		}
		for method := range has {
			if prefix != "Call" && !used[method] && !slices.Contains(strings.Fields(string(unused)), method) {
				problems = append(problems, from+" has the new method "+method)
			}
		}
	}
	return problems
}

// sameWords are definitions with the values of another.
var sameWords = map[string][]string{"CommandExecutionApprovalDecision": {"FileChangeApprovalDecision", "McpServerElicitationAction"}}

// values compares the values, whose names begin with the name of a definition. Of the kinds of an error there are all: each has a
// sentence.
func (s schema) values(t *testing.T) (problems []string) {
	known := constants(t, "values.go")
	kinds := append(slices.Collect(maps.Values(known)), "httpStatusCode", "turnKind") // details of some
	for kind := range s.all(s["CodexErrorInfo"]) {
		if !slices.Contains(kinds, kind) {
			problems = append(problems, "CodexErrorInfo has the new kind "+kind)
		}
	}
	for name, value := range known {
		definition := ""
		for d := range s {
			if len(d) > len(definition) && strings.HasPrefix(strings.ToLower(name), strings.ToLower(d)) {
				definition = d
			}
		}
		for _, d := range append(sameWords[definition], definition) {
			if !s.all(s[d])[value] {
				problems = append(problems, name+": the schema has no "+strconv.Quote(value))
			}
		}
	}
	return problems
}

func constants(t *testing.T, name string) map[string]string {
	file := must.Get(parser.ParseFile(token.NewFileSet(), name, nil, 0))(t)
	all := map[string]string{}
	for _, d := range file.Decls {
		group, ok := d.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST {
			continue
		}
		for _, spec := range group.Specs {
			c := spec.(*ast.ValueSpec)
			value := must.Get(strconv.Unquote(c.Values[0].(*ast.BasicLit).Value))(t)
			all[c.Names[0].Name] = value
		}
	}
	return all
}

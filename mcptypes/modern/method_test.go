package modern_test

import (
	"context"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/mcptypes/internal/schematest"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
	"github.com/google/go-cmp/cmp"
)

// loop is a Caller and a Registrar: it serves its own calls.
type loop map[string]func(context.Context, json.RawMessage) (any, error)

func (l loop) HandleRaw(method string, f func(context.Context, json.RawMessage) (any, error)) {
	l[method] = f
}

func (l loop) Call(ctx context.Context, method string, params, result any) error {
	text, err := json.Marshal(params)
	if err != nil {
		return err
	}
	got, err := l[method](ctx, text)
	if err != nil {
		return err
	}
	if text, err = json.Marshal(got); err != nil {
		return err
	}
	return json.Unmarshal(text, result)
}

// TestCallOfUnion calls a tool that asks first, then becomes a task.
func TestCallOfUnion(t *testing.T) {
	l := make(loop)
	modern.ToolsCall.Handle(l, func(_ context.Context, p *modern.CallToolRequestParams) (modern.AnyCallToolResult, error) {
		switch answer, ok := p.InputResponses["q"].(*modern.ElicitResult); {
		case !ok:
			return &modern.InputRequiredResult{RequestState: new("s"), InputRequests: modern.InputRequests{"q": &modern.ListRootsRequest{}}}, nil
		case answer.Action == modern.ElicitResultActionAccept && *p.RequestState == "s":
			return &modern.CreateTaskResult{TaskID: "t", Status: modern.TaskStatusWorking}, nil
		case answer.Action == modern.ElicitResultActionDecline:
			return &modern.CallToolResult{Content: modern.Text("declined")}, nil
		}
		return nil, nil
	})
	params := &modern.CallToolRequestParams{Name: "codex"}
	call := func() modern.AnyCallToolResult {
		r, err := modern.ToolsCall.Call(t.Context(), l, params)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	asked, ok := call().(*modern.InputRequiredResult)
	if !ok || *asked.ResultType != modern.ResultTypeInputRequired {
		t.Fatalf("got %+v", asked)
	}
	params.RequestState = asked.RequestState
	params.InputResponses = modern.InputResponses{"q": &modern.ElicitResult{Action: "accept"}}
	if task, ok := call().(*modern.CreateTaskResult); !ok || task.TaskID != "t" {
		t.Errorf("got %+v", task)
	}
	params.InputResponses["q"] = &modern.ElicitResult{Action: "decline"}
	if r, ok := call().(*modern.CallToolResult); !ok || len(r.Content) != 1 || *r.ResultType != modern.ResultTypeComplete {
		t.Errorf("got %+v", r)
	}
	params.InputResponses["q"] = &modern.ElicitResult{Action: "cancel"}
	if _, err := modern.ToolsCall.Call(t.Context(), l, params); err == nil || !strings.Contains(err.Error(), "neither result nor error") {
		t.Errorf("got %v", err)
	}
	_, err := l["tools/call"](t.Context(), json.RawMessage(`{"name":"codex"}`))
	var wrong interface{ InvalidParams() (path, why string) }
	if !errors.As(err, &wrong) {
		t.Fatalf("got %v", err)
	}
	if path, _ := wrong.InvalidParams(); path != "/_meta" {
		t.Errorf("got %v", err)
	}
}

func TestMethods(t *testing.T) {
	var rows []string
	for _, m := range modern.Methods() {
		row := strings.Join([]string{m.Name, m.Params, m.Result}, " ")
		if m.FromServer {
			row += " from the server"
		}
		rows = append(rows, strings.TrimSpace(row))
	}
	want := []string{
		"completion/complete CompleteRequestParams CompleteResult",
		"notifications/cancelled CancelledNotificationParams  from the server",
		"notifications/message LoggingMessageNotificationParams  from the server",
		"notifications/progress ProgressNotificationParams  from the server",
		"notifications/prompts/list_changed NotificationParams  from the server",
		"notifications/resources/list_changed NotificationParams  from the server",
		"notifications/resources/updated ResourceUpdatedNotificationParams  from the server",
		"notifications/subscriptions/acknowledged SubscriptionsAcknowledgedNotificationParams  from the server",
		"notifications/tasks TaskStatusNotificationParams  from the server",
		"notifications/tools/list_changed NotificationParams  from the server",
		"prompts/get GetPromptRequestParams AnyGetPromptResult",
		"prompts/list PaginatedRequestParams ListPromptsResult",
		"resources/list PaginatedRequestParams ListResourcesResult",
		"resources/read ReadResourceRequestParams AnyReadResourceResult",
		"resources/templates/list PaginatedRequestParams ListResourceTemplatesResult",
		"server/discover RequestParams DiscoverResult",
		"subscriptions/listen SubscriptionsListenRequestParams SubscriptionsListenResult",
		"tasks/cancel CancelTaskRequestParams CancelTaskResult",
		"tasks/get GetTaskRequestParams GetTaskResult",
		"tasks/update UpdateTaskRequestParams UpdateTaskResult",
		"tools/call CallToolRequestParams AnyCallToolResult",
		"tools/list PaginatedRequestParams ListToolsResult",
	}
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestDecodeServerResult(t *testing.T) {
	for method, text := range map[string]string{
		"tools/call":      `{"resultType":"task","taskId":"t","status":"working","createdAt":"","lastUpdatedAt":"","ttlMs":null}`,
		"tasks/get":       `{"resultType":"complete","taskId":"t","status":"working","createdAt":"","lastUpdatedAt":"","ttlMs":null}`,
		"server/discover": `{"resultType":"complete","cacheScope":"private","ttlMs":0,"supportedVersions":[],"capabilities":{}}`,
	} {
		r, err := modern.DecodeServerResult(method, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		got, err := modern.Encode(r)
		if err != nil || !schematest.SameValue(schematest.Parse(t, text), schematest.Parse(t, string(got))) {
			t.Errorf("%s became %s, %v", text, got, err)
		}
	}
	if _, err := modern.DecodeServerResult("initialize", []byte("{}")); err == nil {
		t.Error("initialize has a result")
	}
}

// TestDocNamesAliases checks that the package's comment lists exactly the aliases of types
// in mcptypes.
func TestDocNamesAliases(t *testing.T) {
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	_, list, ok1 := strings.Cut(strings.ReplaceAll(string(text), "\n// ", " "), "in Go: RequestID")
	list, _, ok2 := strings.Cut("RequestID"+list, "So are")
	if !ok1 || !ok2 {
		t.Fatal("doc.go has no list of aliases")
	}
	file, err := parser.ParseFile(token.NewFileSet(), "zz_shared.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	aliases := make(map[string]bool)
	for _, d := range file.Decls {
		if g, ok := d.(*ast.GenDecl); ok && !g.Lparen.IsValid() && g.Tok == token.TYPE {
			aliases[g.Specs[0].(*ast.TypeSpec).Name.Name] = true
		}
	}
	for _, name := range regexp.MustCompile(`\b[A-Z]\w+`).FindAllString(list, -1) {
		if !aliases[name] {
			t.Errorf("%s is not an alias", name)
		}
		delete(aliases, name)
	}
	for name := range aliases {
		t.Errorf("%s is an alias that doc.go does not name", name)
	}
}

// TestDecodeParams decodes the params of every method of the table.
func TestDecodeParams(t *testing.T) {
	const meta = `{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}`
	for _, m := range modern.Methods() {
		got, err := modern.DecodeParams(m.Name, []byte(meta))
		if wrong, ok := errors.AsType[*modern.DecodeError](err); ok && got == nil {
			if wrong.Msg != "required, but absent" || strings.HasPrefix(wrong.Path, "/_meta") {
				t.Errorf("%s: %v", m.Name, err)
			}
			continue
		}
		if name := reflect.TypeOf(got).String(); err != nil || name != "*modern."+m.Params {
			t.Errorf("%s: %s, %v, want %s", m.Name, name, err, m.Params)
		}
	}
	if got, err := modern.DecodeParams("initialize", []byte(meta)); err == nil || got != nil {
		t.Errorf("initialize: %v", got)
	}
}

// TestTaskCreated answers a call with a task.
func TestTaskCreated(t *testing.T) {
	created := modern.Task{TaskID: "t", CreatedAt: "c", LastUpdatedAt: "u", StatusMessage: new("m"), TTLMs: new(int64(1)), PollIntervalMs: new(int64(2))}.Created()
	text, err := modern.Encode(created)
	const want = `{"resultType":"task","createdAt":"c","lastUpdatedAt":"u","pollIntervalMs":2,"status":"working","statusMessage":"m","taskId":"t","ttlMs":1}`
	if err != nil || string(text) != want {
		t.Errorf("%s, %v, want %s", text, err, want)
	}
	var back modern.AnyCallToolResult
	if err := modern.Decode(text, &back); err != nil {
		t.Fatal(err)
	}
	if _, ok := back.(*modern.CreateTaskResult); !ok {
		t.Errorf("it reads as %T", back)
	}
	if done := (modern.Task{Status: modern.TaskStatusCompleted}).Created(); done.Status != modern.TaskStatusCompleted {
		t.Errorf("status %s", done.Status)
	}
}

// TestOutput writes and reads structured content of any kind.
func TestOutput(t *testing.T) {
	r, err := modern.NewOutput([]int{1, 2})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := modern.OutputOf[[]int](r); err != nil || !slices.Equal(got, []int{1, 2}) {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := modern.OutputOf[[]string](r); err == nil {
		t.Errorf("%v", got)
	}
	if _, err := modern.OutputOf[any](&modern.CallToolResult{}); err == nil {
		t.Error("no structured content is an output")
	}
}

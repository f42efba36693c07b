package tools_test

import (
	"context"
	"encoding/json"
	"fmt"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/memdir"
	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestChosenTools offers some of the tools. Arguments whose results need another tool are not offered.
func TestChosenTools(t *testing.T) {
	for _, tt := range []struct {
		chosen, tools []string
		refused       []string // arguments of codex, those of codex-reply among them
	}{
		{nil, append([]string{"codex", "codex-reply"}, config.Choosable...), nil},
		{config.Choosable, append([]string{"codex", "codex-reply"}, config.Choosable...), nil},
		{[]string{}, []string{"codex", "codex-reply"}, []string{"background"}},
		{[]string{"codex", "codex-wait", "codex-wait", "nosuch"}, []string{"codex", "codex-reply", "codex-wait"}, nil},
		{[]string{"codex-review", "codex-list"}, []string{"codex", "codex-reply", "codex-list", "codex-review"}, []string{"background"}},
	} {
		bubble(t, fmt.Sprint(tt.chosen), func(t *testing.T) {
			c := servertest.Dial(t, codexserver.New(&servertest.Engine{Turn: servertest.Echo}, &codexserver.Options{Home: t.TempDir(), Calls: codexserver.CallOptions{Tools: tt.chosen}}), nil)
			var names []string
			for _, tool := range listed(t, c) {
				names = append(names, tool.Name)
				for _, name := range tt.refused {
					if _, ok := tool.InputSchema.Properties[name]; ok {
						t.Errorf("%s offers %s", tool.Name, name)
					}
				}
			}
			if diff := cmp.Diff(tt.tools, names, cmpopts.SortSlices(strings.Compare)); diff != "" {
				t.Errorf("the tools (-want +got):\n%s", diff)
			}
			for _, name := range append([]string{"codex", "codex-reply"}, config.Choosable...) {
				got := c.Ask(t, "tools/call", fmt.Sprintf(`{"name":%q,"arguments":{}}`, name))
				if unknown := strings.Contains(got, "unknown tool"); unknown == slices.Contains(tt.tools, name) {
					t.Errorf("a call of %s: %s", name, got)
				}
			}
			for _, name := range tt.refused {
				got := c.Ask(t, "tools/call", fmt.Sprintf(`{"name":"codex","arguments":{"prompt":"p",%q:true}}`, name))
				if !strings.Contains(got, "codex: argument /"+name+" is locked: the server's own configuration decides") {
					t.Errorf("%s: %s", name, got)
				}
			}
			got := c.Ask(t, "tools/call", `{"name":"codex-reply","arguments":{"prompt":"p","threadId":"past","background":true}}`)
			if locked := strings.Contains(got, "codex-reply: argument /background is locked"); locked != slices.Contains(tt.refused, "background") {
				t.Errorf("codex-reply: %s", got)
			}
		})
	}
}

// TestLocked locks arguments: no tool offers them, nothing starts with them, also by newConversation, and no key of config
// chooses what they choose. A call with a locked cwd works in the server's folder.
func TestLocked(t *testing.T) {
	t.Chdir(t.TempDir())
	folder := t.TempDir()
	free := servertest.Dial(t, codexserver.New(engine.TurnFunc(servertest.AskExec), nil), nil)
	offered := slices.Collect(maps.Keys(listed(t, free)[0].InputSchema.Properties))
	if diff := cmp.Diff(append(slices.Clone(config.Lockable), "background", "prompt"), offered, cmpopts.SortSlices(strings.Compare)); diff != "" {
		t.Errorf("what can be locked, and the tool's arguments (-want +got):\n%s", diff)
	}
	for _, tt := range []struct {
		calls codexserver.CallOptions
		want  map[string]string // by the arguments of codex beside a prompt, or by the parameters of newConversation
		turn  string            // which arguments of a turn a call may still set
	}{
		{codexserver.CallOptions{LockedArguments: []string{"config", "sandbox"}}, map[string]string{
			`"model":null`:                          `"text":"denied"`,
			`"config":{"notify":["sh"]}`:            "codex: argument /config is locked",
			`"config":null`:                         "codex: argument /config is locked",
			`"sandbox":"danger-full-access"`:        "codex: argument /sandbox is locked",
			`"\u0073andbox":"danger-full-access"`:   "codex: argument /sandbox is locked",
			`"approval-policy":"never","Config":{}`: "unknown argument /Config",
		}, "effort images output-schema"},
		{codexserver.CallOptions{LockedArguments: []string{"approval-policy", "config", "cwd", "profile", "sandbox"}}, map[string]string{
			`"cwd":"/"`: "argument /cwd is locked", `"cwd":"."`: "argument /cwd is locked", `"cwd":null`: "argument /cwd is locked", `"model":null`: `"text":"denied"`,
		}, "effort images output-schema"},
		{codexserver.CallOptions{LockedArguments: []string{"config"}}, nil, "effort images output-schema"},
		{codexserver.CallOptions{LockedArguments: []string{"sandbox"}}, nil, "effort images output-schema web-search"},
		{codexserver.CallOptions{LockedArguments: []string{"effort", "images", "output-schema", "web-search"}}, nil, ""},
		{codexserver.CallOptions{LockedArguments: []string{"approval-policy", "sandbox", "web-search"}, Folders: []string{folder}}, map[string]string{
			`{"sandbox":"read-only"}`:                  "argument /sandbox is locked",
			`{"approvalPolicy":"never"}`:               "argument /approval-policy is locked",
			`{"config":{"sandbox_mode":"read-only"}}`:  "sandbox_mode is locked with the argument /sandbox",
			`{"config":{"tools":{"web_search":true}}}`: "tools.web_search is locked with the argument /web-search",
			`{"cwd":"/"}`: "argument /cwd: ",
			`{"config":{"model_verbosity":"low"},"cwd":""}`: "conversationId",
		}, "effort images output-schema"},
		{codexserver.CallOptions{TrustedCalls: true, LockedArguments: []string{"approval-policy", "profile", "sandbox", "web-search"}}, map[string]string{
			`"config":{"model_reasoning_effort":"low"}`:                    `"text":"denied"`,
			`"config":{"tools":{"view_image":false}}`:                      `"text":"denied"`,
			`"config":{"approval_policy":"never"}`:                         "approval_policy is locked with the argument /approval-policy",
			`"config":{"approval\u005fpolicy":"never"}`:                    "approval_policy is locked with the argument /approval-policy",
			`"config":{"profile":"loose"}`:                                 "profile is locked with the argument /profile",
			`"config":{"sandbox_mode":"danger-full-access"}`:               "sandbox_mode is locked with the argument /sandbox",
			`"config":{"sandbox_workspace_write":{"network_access":true}}`: "sandbox_workspace_write is locked with the argument /sandbox",
			`"config":{"sandbox_workspace_write.network_access":true}`:     "sandbox_workspace_write is locked with the argument /sandbox",
			`"config":{"sandbox_workspace_write.writable_roots":["/"]}`:    "sandbox_workspace_write is locked with the argument /sandbox",
			`"config":{"tools":{"web_search":true}}`:                       "tools.web_search is locked with the argument /web-search",
			`"config":{"tools.web_search":true}`:                           "tools.web_search is locked with the argument /web-search",
			`"config":{"tools":"{\"web_search\":true}"}`:                   "tools.web_search is locked with the argument /web-search",
			`"config":"{\"tools\":\"{\\\"web_search\\\":true}\"}"`:         "tools.web_search is locked with the argument /web-search",
			`"config":{"features":"{\"web_search_request\":\"true\"}"}`:    "features.web_search_request is locked with the argument /web-search",
			`"config":{"\"approval_policy\"":"never"}`:                     "approval_policy is locked with the argument /approval-policy",
			`"config":{" approval_policy ":"never"}`:                       "approval_policy is locked with the argument /approval-policy",
			`"config":{"'tools' . 'web_search'":true}`:                     "tools.web_search is locked with the argument /web-search",
			`"config":{"tools":{"'web_search'":true}}`:                     "tools.web_search is locked with the argument /web-search",
			`"config":{"tools.web_search.mode":1}`:                         "tools.web_search is locked with the argument /web-search",
			`"config":{"permissions.mine.extends":"full"}`:                 "permissions is locked with the argument /sandbox",
		}, "effort images output-schema"},
	} {
		synctest.Test(t, func(t *testing.T) {
			e := &servertest.Engine{Turn: servertest.AskExec}
			c := servertest.Dial(t, codexserver.New(e, &codexserver.Options{Folder: strings.Join(tt.calls.Folders, ""), Calls: tt.calls}), nil)
			for _, tool := range listed(t, c) {
				for _, name := range tt.calls.LockedArguments {
					if _, ok := tool.InputSchema.Properties[name]; ok && tool.Name != "codex-list" { // whose cwd is a filter
						t.Errorf("%s offers %s", tool.Name, name)
					}
				}
			}
			for arguments, want := range tt.want {
				method, params, before := "tools/call", `{"name":"codex","arguments":{"prompt":"p",`+arguments+`}}`, len(e.Started())
				if strings.HasPrefix(arguments, "{") {
					method, params = "newConversation", arguments
				}
				got := c.Ask(t, method, params)
				if refused := strings.Contains(want, "argument /"); !strings.Contains(got, want) || refused != (len(e.Started()) == before) {
					t.Errorf("%s: %s, want %s", arguments, got, want)
				}
			}
			id := servertest.ThreadOf(t, c.CallTool(t, "codex", `{"prompt":"p"}`))
			for name, value := range map[string]string{"effort": `"low"`, "images": `[]`, "output-schema": `{}`, "web-search": `true`} {
				for i, call := range []string{`{"prompt":"p",`, fmt.Sprintf(`{"prompt":"p","threadId":%q,`, id)} {
					tool, taken := listed(t, c)[i], slices.Contains(strings.Fields(tt.turn), name)
					if i == 1 && name == "web-search" {
						continue
					}
					if _, ok := tool.InputSchema.Properties[name]; ok != taken {
						t.Errorf("%v: %s offers %s: %t", tt.calls, tool.Name, name, ok)
					}
					got := c.CallTool(t, tool.Name, call+fmt.Sprintf(`%q:%s}`, name, value))
					if refused := strings.Contains(got, "argument /"+name+" is locked"); refused == taken {
						t.Errorf("%v: %s with %s: %s", tt.calls, tool.Name, name, got)
					}
				}
			}
			if got := lastConfig(e).Cwd; got == "" || got == "/" {
				t.Errorf("cwd %q", got)
			}
		})
	}
}

// TestToolListIsShort bounds the list of tools, which clients pass to their models.
func TestToolListIsShort(t *testing.T) {
	c := servertest.Dial(t, codexserver.New(&servertest.Engine{}, &codexserver.Options{Home: t.TempDir()}), nil)
	hello := c.Ask(t, "initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}`)
	var r struct{ Instructions string }
	if err := json.Unmarshal([]byte(hello), &r); err != nil || len(r.Instructions) >= 2000 || !strings.Contains(r.Instructions, "codex-review") {
		t.Errorf("%d characters of instructions, %v: %s", len(r.Instructions), err, hello)
	}
	list := c.Ask(t, "tools/list", `{}`)
	if len(list) >= 12_000 || !strings.Contains(list, `"codex-review"`) {
		t.Errorf("tools/list has %d characters", len(list))
	}
	t.Logf("%d characters of instructions, %d of tools/list", len(r.Instructions), len(list))
}

type toolShape struct {
	Name         string       `json:"name"`
	Title        string       `json:"title"`
	InputSchema  schemaShape  `json:"inputSchema"`
	OutputSchema *schemaShape `json:"outputSchema"`
}

type schemaShape struct {
	Type                 any                    `json:"type"`
	Properties           map[string]schemaShape `json:"properties"`
	Required             []string               `json:"required"`
	Enum                 []string               `json:"enum"`
	AdditionalProperties any                    `json:"additionalProperties"`
}

// listed returns the tools that a server offers.
func listed(t *testing.T, c *servertest.Client) []toolShape {
	t.Helper()
	var list struct{ Tools []toolShape }
	must.OK(t, json.Unmarshal([]byte(c.Ask(t, "tools/list", `{}`)), &list))
	return list.Tools
}

// TestDocumented finds the arguments of the tools and the members of their results in docs/wire.md.
func TestDocumented(t *testing.T) {
	page := string(must.Get(os.ReadFile("../../../docs/wire.md"))(t))
	synctest.Test(t, func(t *testing.T) {
		for _, tool := range listed(t, servertest.Dial(t, codexserver.New(&servertest.Engine{Turn: servertest.Echo}, nil), nil)) {
			shapes := []schemaShape{tool.InputSchema}
			if tool.OutputSchema != nil {
				shapes = append(shapes, *tool.OutputSchema)
			}
			for _, shape := range shapes {
				for name := range shape.Properties {
					if !strings.Contains(page, "`"+name+"`") {
						t.Errorf("%s: %s is not on the page", tool.Name, name)
					}
				}
			}
		}
	})
}

// TestToolsAreASuperset checks that our tools take all arguments that the tools of Codex's servers took, and return all
// that those promised. The recordings have the names, types and enums of their lists.
func TestToolsAreASuperset(t *testing.T) {
	files, err := filepath.Glob("testdata/tools-*.json")
	if err != nil || len(files) != 2 {
		t.Fatalf("recordings %v, %v", files, err)
	}
	var ours []toolShape
	synctest.Test(t, func(t *testing.T) {
		ours = listed(t, servertest.Dial(t, codexserver.New(engine.TurnFunc(servertest.Echo), nil), nil))
	})
	for _, file := range files {
		raw, err := os.ReadFile(file)
		must.OK(t, err)
		var theirs struct{ Tools []toolShape }
		if err := json.Unmarshal(raw, &theirs); err != nil || len(theirs.Tools) != 2 {
			t.Fatalf("%s: %d tools, %v", file, len(theirs.Tools), err)
		}
		for _, want := range theirs.Tools {
			at := slices.IndexFunc(ours, func(o toolShape) bool { return o.Name == want.Name })
			if at < 0 {
				t.Errorf("%s: there is no tool %s", file, want.Name)
				continue
			}
			got := ours[at]
			if got.Title != want.Title {
				t.Errorf("%s: the title of %s is %q, want %q", file, want.Name, got.Title, want.Title)
			}
			takes(t, file+": "+want.Name, want.InputSchema, got.InputSchema)
			if want.OutputSchema == nil {
				continue
			}
			if got.OutputSchema == nil {
				t.Errorf("%s: %s has no outputSchema", file, want.Name)
				continue
			}
			takes(t, file+": result of "+want.Name, *want.OutputSchema, *got.OutputSchema)
			for _, name := range want.OutputSchema.Required {
				if !slices.Contains(got.OutputSchema.Required, name) {
					t.Errorf("%s: the result of %s does not promise %s", file, want.Name, name)
				}
			}
		}
	}
	if more := ours[0].InputSchema.AdditionalProperties; more != false {
		t.Errorf("additionalProperties of codex is %v, want false", more)
	}
	if more := ours[1].InputSchema.AdditionalProperties; more != nil {
		t.Errorf("additionalProperties of codex-reply is %v: what it does not know it ignores", more)
	}
}

// takes checks that every value that fits one schema fits the other.
func takes(t *testing.T, at string, theirs, ours schemaShape) {
	t.Helper()
	if theirs.Type != ours.Type {
		t.Errorf("%s: type %v, want %v", at, ours.Type, theirs.Type)
	}
	for _, word := range theirs.Enum {
		if !slices.Contains(ours.Enum, word) {
			t.Errorf("%s: %q is missing in %q", at, word, ours.Enum)
		}
	}
	if len(theirs.Enum) == 0 && len(ours.Enum) > 0 {
		t.Errorf("%s: any value was taken, now only %q", at, ours.Enum)
	}
	for _, name := range ours.Required {
		if !slices.Contains(theirs.Required, name) {
			t.Errorf("%s: %s was not required", at, name)
		}
	}
	for name, schema := range theirs.Properties {
		own, ok := ours.Properties[name]
		if !ok {
			t.Errorf("%s: %s is missing", at, name)
			continue
		}
		takes(t, at+"/"+name, schema, own)
	}
	if theirs.AdditionalProperties == true && ours.AdditionalProperties != true {
		t.Errorf("%s: more members were taken", at)
	}
}

// shelf is an engine with a list of conversations. A cursor is the index of an element.
type shelf struct {
	*servertest.Engine
	all           []protocol.ConversationSummary
	calls, looked int
	eager         bool // its last page has a cursor, too
}

func (s *shelf) List(_ context.Context, p protocol.ListConversationsParams) (*protocol.ListConversationsResult, error) {
	s.calls++
	from := 0
	if p.Cursor != "" {
		var err error
		if from, err = strconv.Atoi(p.Cursor); err != nil {
			return nil, engine.ErrCursor
		}
	}
	size := 25
	if p.PageSize != nil {
		size = *p.PageSize
	}
	to := min(from+size, len(s.all))
	s.looked += to - from
	r := &protocol.ListConversationsResult{Items: s.all[from:to]}
	if to < len(s.all) || s.eager && to > from {
		r.NextCursor = new(strconv.Itoa(to))
	}
	return r, nil
}

// show calls codex-list and returns its rows, each as an index and a preview, and the cursor.
func (s *shelf) show(t *testing.T, arguments string) (rows []string, next string) {
	t.Helper()
	if !strings.Contains(arguments, `"cwd"`) {
		arguments = strings.TrimSuffix(`"cwd":"*",`+arguments, ",")
	}
	var list struct {
		Conversations []struct{ ThreadID, Preview string }
		NextCursor    string
	}
	r := use(t, servertest.Connect(t, codexserver.New(s, nil), nil), "codex-list", "{"+arguments+"}", &list)
	if r.IsError {
		return []string{r.Content[0].Text}, ""
	}
	for _, row := range list.Conversations {
		rows = append(rows, row.ThreadID+" "+row.Preview)
	}
	return rows, list.NextCursor
}

// TestListTitles checks that a title is one line of at most 120 characters.
func TestListTitles(t *testing.T) {
	long := strings.Repeat("é", 119)
	s := &shelf{Engine: &servertest.Engine{}, all: []protocol.ConversationSummary{
		{ConversationID: "0", Preview: "  fix\n\tthe bug\n" + strings.Repeat("why ", 50_000)},
		{ConversationID: "1", Preview: long},
		{ConversationID: "2", Preview: long + "é"},
		{ConversationID: "3", Preview: strings.Repeat("\x1b]2;x\u202e", 200)},
		{ConversationID: "4", Preview: "first message", Title: "a name"},
		{ConversationID: "5", Preview: "first message", Title: " \n"},
	}}
	rows, _ := s.show(t, "")
	for i, want := range []string{"0 fix the bug why why ", "1 " + long, "2 " + long + "…", `3 \x1b]2;x\u{202e}`, "4 a name", "5 first message"} {
		_, title, _ := strings.Cut(rows[i], " ")
		if !strings.HasPrefix(rows[i], want) || utf8.RuneCountInString(title) > 120 || strings.ContainsAny(title, "\n\t\x1b\u202e") {
			t.Errorf("%d characters: %q, want %q…", utf8.RuneCountInString(title), rows[i], want)
		}
	}
}

// TestListSearch checks the search, the folder, the bound and the cursor of codex-list.
func TestListSearch(t *testing.T) {
	dir := t.TempDir()
	work, link := filepath.Join(dir, "work"), filepath.Join(dir, "link")
	must.OK(t, os.Mkdir(work, 0o755))
	testenv.NeedsLinks(t)
	must.OK(t, os.Symlink(work, link))
	newShelf := func() *shelf {
		s := &shelf{Engine: &servertest.Engine{}}
		for i := range 5000 {
			c := protocol.ConversationSummary{ConversationID: strconv.Itoa(i), Preview: "p", Cwd: "/gone"}
			switch {
			case i%1000 == 7:
				c.Preview = "Fix the\nPARSER " + strings.Repeat("x", 500) + " at last"
			case i%1000 == 8:
				c.Title, c.Cwd = "The parser", work
			case i%1000 == 9:
				c.Cwd = link + "/"
			}
			s.all = append(s.all, c)
		}
		return s
	}
	ids := func(rows []string) (all []string) {
		for _, row := range rows {
			id, _, _ := strings.Cut(row, " ")
			all = append(all, id)
		}
		return all
	}
	for _, tt := range []struct {
		arguments string
		want      []string
		next      string
	}{
		{`"search":"Parser"`, []string{"7", "8", "1007", "1008"}, "2000"},
		{`"search":"parser","cursor":"2000"`, []string{"2007", "2008", "3007", "3008"}, "4000"},
		{`"search":"parser","cursor":"4000"`, []string{"4007", "4008"}, ""},
		{`"search":"parser","pageSize":2`, []string{"7", "8"}, "9"},
		{`"search":"parser","pageSize":3,"cursor":"9"`, []string{"1007", "1008", "2007"}, "2008"},
		{`"search":"AT LAST","pageSize":1`, []string{"7"}, "8"},
		{`"search":"nowhere"`, nil, "2000"},
		{`"search":"nowhere","cursor":"4000"`, nil, ""},
		{fmt.Sprintf(`"cwd":%q,"pageSize":3`, work), []string{"8", "9", "1008"}, "1009"},
		{fmt.Sprintf(`"cwd":%q,"search":"parser","pageSize":2`, link), []string{"8", "1008"}, "1009"},
		{`"cwd":"/gone/../gone/","search":"parser","pageSize":1`, []string{"7"}, "8"},
		{fmt.Sprintf(`"cwd":%q`, dir), []string{"8", "9", "1008", "1009"}, "2000"},
		{`"pageSize":0,"search":"parser"`, []string{"7", "8", "1007", "1008"}, "2000"},
		{`"pageSize":2`, []string{"0", "1"}, "2"},
		{`"search":null,"cwd":"*","pageSize":null,"cursor":"4990"`, []string{"4990", "4991", "4992", "4993", "4994", "4995", "4996", "4997", "4998", "4999"}, ""},
	} {
		s := newShelf()
		rows, next := s.show(t, tt.arguments)
		if diff := cmp.Diff(tt.want, ids(rows)); diff != "" || next != tt.next {
			t.Errorf("%s: cursor %q, want %q (-want +got):\n%s", tt.arguments, next, tt.next, diff)
		}
		if s.calls > 6 || s.looked > 3000 {
			t.Errorf("%s: %d calls looked at %d conversations", tt.arguments, s.calls, s.looked)
		}
	}
	for arguments, want := range map[string]string{`"cursor":"4990"`: "", `"cursor":"4990","pageSize":10`: "", `"cursor":"4990","pageSize":9`: "4999", `"cursor":"4000","search":"parser"`: ""} {
		s := newShelf()
		s.eager = true
		if _, next := s.show(t, arguments); next != want {
			t.Errorf("{%s} of an engine with a cursor on the last page: cursor %q, want %q", arguments, next, want)
		}
	}
	for arguments, want := range map[string]int{``: 10, `"pageSize":50`: 50, `"pageSize":1000000`: 50, `"pageSize":-1`: 10, `"search":"p","pageSize":1000000`: 50} {
		if rows, _ := newShelf().show(t, arguments); len(rows) != want {
			t.Errorf("{%s}: %d rows, want %d", arguments, len(rows), want)
		}
	}
	for arguments, want := range map[string]string{
		`"cursor":"bogus"`:              "codex-list: argument /cursor: not the nextCursor of a page",
		`"cursor":"bogus","search":"p"`: "codex-list: argument /cursor: not the nextCursor of a page",
		`"cursor":5`:                    "codex-list: argument /cursor: got number, want string",
		`"search":["p"]`:                "codex-list: argument /search: got array, want string",
		`"cwd":true`:                    "codex-list: argument /cwd: got boolean, want string",
		`"pageSize":"five"`:             "codex-list: argument /pageSize: got string, want integer",
	} {
		if rows, _ := newShelf().show(t, arguments); len(rows) != 1 || rows[0] != want {
			t.Errorf("{%s}: %q, want %q", arguments, rows, want)
		}
	}
}

// turnEnd is the end of a turn.
type turnEnd struct {
	Status, Stopped, Content string
	IsError                  bool
}

// endOf calls a tool that runs a turn, and returns its end and its thread.
func endOf(t *testing.T, c *servertest.Client, tool, arguments string) (e turnEnd, thread string) {
	t.Helper()
	var s struct {
		started
		Stopped string
	}
	r := use(t, c, tool, arguments, &s)
	if text := r.said(); text != s.Content {
		t.Errorf("the text is %q, the structured one %q", text, s.Content)
	}
	return turnEnd{s.Status, s.Stopped, s.Content, r.IsError}, s.ThreadID
}

// stops returns the result of a turn that a budget stopped.
func stops(budget, last string) turnEnd {
	text := "The turn was stopped: budget of " + budget + " reached. What it has changed stays."
	if last != "" {
		text += " The last message:\n\n" + last
	}
	return turnEnd{Status: "aborted", Stopped: "budget of " + budget + " reached", Content: text}
}

func TestBudget(t *testing.T) {
	for _, tt := range []struct {
		prompt, budget string
		want           turnEnd
		took           time.Duration
	}{
		{"say:a wait:1h say:b", `{"minutes":90}`, turnEnd{Status: "completed", Content: "a, b"}, time.Hour},
		{"say:a wait:1h say:b", `{"minutes":20}`, stops("20 minutes", "a"), 20 * time.Minute},
		{"wait:1h", `{"minutes":0.5,"tokens":7}`, stops("0.5 minutes", ""), 30 * time.Second},
		{"wait:1h", `{"minutes":1}`, stops("1 minute", ""), time.Minute},
		{"say:a make say:b", `{"minutes":1}`, stops("1 minute", "a"), time.Minute}, // no answer comes
		{"say:a wait:1h", `{"minutes":1e300}`, turnEnd{Status: "completed", Content: "a"}, time.Hour},
		{"say:a spend:40 say:b spend:40 wait:1h", `{"tokens":80}`, stops("80 tokens", "b"), 0},
		{"say:a spend:79 say:b", `{"tokens":80,"minutes":1}`, turnEnd{Status: "completed", Content: "a, b"}, 0},
		{"say:a spend:500 wait:1h", `{"tokens":1,"minutes":1}`, stops("1 token", "a"), 0},
		{"say:a", `{"tokens":80}`, turnEnd{Status: "completed", Content: "a\n\nThe budget of tokens was not held: the model's provider does not count them."}, 0},
		{"say:a spend:500", `null`, turnEnd{Status: "completed", Content: "a"}, 0},
	} {
		bubble(t, tt.prompt+" "+tt.budget, func(t *testing.T) {
			c := servertest.Dial(t, codexserver.New(servertest.Script(), &codexserver.Options{Desk: &servertest.Desk{}, Approvals: elicit.Options{Timeout: -1}}), nil)
			begin := time.Now()
			first, thread := endOf(t, c, "codex", fmt.Sprintf(`{"prompt":%q,"budget":%s}`, tt.prompt, tt.budget))
			if diff := cmp.Diff(tt.want, first); diff != "" || time.Since(begin) != tt.took {
				t.Errorf("after %v (-want +got):\n%s", time.Since(begin), diff)
			}
			// The next turn has a budget of its own.
			again, _ := endOf(t, c, "codex-reply", fmt.Sprintf(`{"threadId":%q,"prompt":%q,"budget":%s}`, thread, tt.prompt, tt.budget))
			must.Equal(t, "the next turn", tt.want, again)
			if free, _ := endOf(t, c, "codex-reply", fmt.Sprintf(`{"threadId":%q,"prompt":"spend:999 wait:24h say:free"}`, thread)); free != (turnEnd{Status: "completed", Content: "free"}) {
				t.Errorf("a turn without a budget: %+v", free)
			}
		})
	}
}

// TestBudgetOfAQueuedTurn queues two turns of one thread. The time of the second starts when its turn starts.
func TestBudgetOfAQueuedTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := servertest.Dial(t, codexserver.New(servertest.Script(), nil), nil)
		_, thread := endOf(t, c, "codex", `{"prompt":"wait:1h say:first","background":true}`)
		got, _ := endOf(t, c, "codex-reply", fmt.Sprintf(`{"threadId":%q,"prompt":"wait:9m say:second","budget":{"minutes":10}}`, thread))
		if got != (turnEnd{Status: "completed", Content: "second"}) {
			t.Errorf("%+v", got)
		}
	})
}

func TestInvalidBudgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &servertest.Engine{Turn: servertest.Echo}
		c := servertest.Dial(t, codexserver.New(e, nil), nil)
		for budget, want := range map[string]string{
			`{}`:                              "argument /budget: want tokens, minutes or both",
			`{"tokens":null}`:                 "argument /budget: want tokens, minutes or both",
			`5`:                               "argument /budget: got number, want object",
			`{"tokens":0}`:                    "argument /budget/tokens: want at least 1",
			`{"tokens":-1,"minutes":5}`:       "argument /budget/tokens: want at least 1",
			`{"tokens":1.5}`:                  "argument /budget/tokens: the number is out of range, or written with a fraction",
			`{"tokens":99999999999999999999}`: "argument /budget/tokens: the number is out of range, or written with a fraction",
			`{"minutes":1e400}`:               "argument /budget/minutes: the number is out of range, or written with a fraction",
			`{"tokens":"five"}`:               "argument /budget/tokens: got string, want integer",
			`{"minutes":0}`:                   "argument /budget/minutes: want more than 0",
			`{"minutes":-1}`:                  "argument /budget/minutes: want more than 0",
			`{"minutes":true}`:                "argument /budget/minutes: got boolean, want number",
			`{"minutes":5,"min/utes":5}`:      "unknown argument /budget/min~1utes: did you mean minutes?",
			`{"tokens":5,"token":{}}`:         "unknown argument /budget/token: did you mean tokens?",
		} {
			for tool, call := range map[string]string{"codex": `{"prompt":"p","budget":%s}`, "codex-reply": `{"prompt":"p","threadId":"t","budget":%s}`} {
				if got, _ := endOf(t, c, tool, fmt.Sprintf(call, budget)); !got.IsError || !strings.HasSuffix(got.Content, ": "+want) {
					t.Errorf("%s %s: %+v, want %s", tool, budget, got, want)
				}
			}
		}
		if n := len(e.Started()); n != 0 {
			t.Errorf("%d conversations were started", n)
		}
	})
}

// TestBudgetWithSteer sends a message to a running turn, which is part of it and bounded with it.
func TestBudgetWithSteer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := servertest.Dial(t, codexserver.New(newListener(), nil), nil)
		id := servertest.ThreadOf(t, c.Ask(t, "tools/call", `{"name":"codex","arguments":{"prompt":"begin","background":true,"budget":{"minutes":5}}}`))
		synctest.Wait()
		c.Ask(t, "tools/call", fmt.Sprintf(`{"name":"codex-reply","arguments":{"threadId":%q,"prompt":"more","while-running":"steer"}}`, id))
		<-time.After(6 * time.Minute)
		has(t, "the bounded turn", c.Ask(t, "tools/call", `{"name":"codex-wait","arguments":{}}`), `"stopped":"budget of 5 minutes reached"`)
	})
}

func TestMain(m *testing.M) {
	native.Main() // does not return in a launcher
	os.Exit(memdir.Run(m))
}

// newNative returns the native engine, which asks for nothing, with a scripted model. The end of the test closes both.
func newNative(t *testing.T, home string, model *providertest.Server) *native.Engine {
	t.Helper()
	t.Cleanup(model.Close)
	e, err := native.New(&native.Options{CodexHome: home, Overrides: map[string]any{
		"model": "scripted", "model_provider": "local", "model_providers.local.name": "local", "model_providers.local.base_url": model.BaseURL(),
		"model_providers.local.wire_api": "responses", "approval_policy": "never", "sandbox_mode": "danger-full-access",
	}})
	must.OK(t, err)
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

package approval_test

import (
	"encoding/json"
	"fmt"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/elicit"
)

// hostile is text of another party that tries to look like a question of this program.
var hostile = map[string]string{
	"escape sequence": "\x1b[2J\x1b[HAllow Codex to run `ls`?",
	"carriage return": "Which?\rAllow Codex to run `ls`?",
	"backspaces":      strings.Repeat("\b", 60) + "Allow Codex to run `ls`?",
	"line breaks":     "Which?" + strings.Repeat("\n", 60) + "Allow Codex to run `ls` in `/work`?",
	"other breaks":    "Which?\u2028Allow Codex\u0085Allow Codex\vAllow Codex\fAllow Codex",
	"direction":       "Which? \u202e`sl` nur ot xedoC wollA\u202c", "zero width": "A\u200bllow Co\u200ddex to run `l\ufeffs`?",
	"tag characters": "Which?\U000e0041\U000e006c\U000e006c", "combining marks": "Which?" + strings.Repeat("\u0335", 200),
	"its quotes": "x\"\nAllow Codex to run `ls`?", "code spans": "``` \nAllow Codex to run `ls`?",
	"Markdown":         "![x](https://evil.example/?q=1)\n# Allow Codex to run\n[Approve](https://evil.example)",
	"its name":         "The MCP server \"other\" asks:\n\"other\": Which?",
	"marks":            "\"evil\": \nReason given by the model: \"fine\"",
	"two megabytes":    strings.Repeat("x", 2<<20),
	"many lines":       strings.Repeat("Allow Codex to run `ls`?\n", 1<<16),
	"not UTF-8":        "Which?\xff\xfe",
	"nothing":          "",
	"only white space": " \n\t\r\n ",
}

// TestForeignMessages shows hostile messages, of a server and of the model. Every line names who
// asks, and nothing is hidden.
func TestForeignMessages(t *testing.T) {
	for name, text := range hostile {
		for server, mark := range map[string][2]string{"evil": {`The MCP server "evil" asks:`, `"evil": `}, "": {`The model asks:`, `the model: `}} {
			t.Run(name+"/"+server, func(t *testing.T) {
				raw, err := json.Marshal(map[string]any{
					"message": text, "requestedSchema": map[string]any{"type": "object", "properties": map[string]any{
						"decision": map[string]any{"type": "string", "title": text, "description": text, "enum": []string{"approved", "denied"}, "enumNames": []string{text, text}},
					}},
					"codex_elicitation": "exec-approval", "codex_command": []string{"ls"}, "threadId": "t", "codex_mcp_tool_call_id": "7",
					"_meta": map[string]any{"codex/approval": map[string]any{"kind": "exec", "command": []string{"ls"}}},
				})
				must.OK(t, err)
				f, err := approval.ModelQuestion(raw)
				if server != "" {
					f, err = approval.ServerQuestion(server, raw)
				}
				must.OK(t, err)
				params := must.Get(f.Question().Params(elicit.Client{ProtocolVersion: "2025-11-25"}, nil))(t)
				var p map[string]any
				must.OK(t, json.Unmarshal(params, &p))
				message, _ := p["message"].(string)
				delete(p, "message")
				for i, line := range strings.Split(message, "\n") {
					if begin := mark[min(i, 1)]; !strings.HasPrefix(line, begin) {
						t.Errorf("line %d is %.80q, want %q first", i, line, begin)
					}
				}
				field := p["requestedSchema"].(map[string]any)["properties"].(map[string]any)["decision"].(map[string]any)
				for _, member := range []string{"title", "description"} {
					if shown, ok := field[member].(string); ok && !strings.HasPrefix(shown, mark[1]) {
						t.Errorf("%s is %.80q, want %q first", member, shown, mark[1])
					}
				}
				seen(t, message)
				seen(t, fmt.Sprint(field))
				if len(message) > 12<<10 || len(params) > 20<<10 {
					t.Errorf("%d bytes, with a message of %d", len(params), len(message))
				}
				delete(p, "requestedSchema")
				must.Equal(t, "other members", map[string]any{"mode": "form"}, p)
			})
		}
	}
}

// seen fails if a text has a character that a human would not see, other than line breaks.
func seen(t *testing.T, text string) {
	t.Helper()
	if shown := elicit.ShowText(text); shown != text || strings.ContainsRune(text, '\t') {
		t.Errorf("%.200q has hidden characters", text)
	}
	if !utf8.ValidString(text) {
		t.Error("not UTF-8")
	}
}

// TestForeignNames shows names of servers and tools.
func TestForeignNames(t *testing.T) {
	for name, want := range map[string]string{
		"github": `"github"`, "my_server-2.0": `"my_server-2.0"`, "x\" asks:\nmine": "`\"x\\\" asks: mine\"`", "a`b": "``\"a`b\"``",
		"\u202eevil": "`\"\\\\u{202e}evil\"`", "": `""`,
	} {
		must.Equal(t, fmt.Sprintf("%q", name), want, elicit.ShowName(name))
	}
	if got := elicit.ShowName(strings.Repeat("x", 1000)); utf8.RuneCountInString(got) > 80 {
		t.Errorf("%d characters", utf8.RuneCountInString(got))
	}
}

// TestForeignForms compares forms as they arrive with those that are shown, and answers as they
// are given with those that the party gets.
func TestForeignForms(t *testing.T) {
	for _, tt := range []struct{ name, schema, shown, answer, want string }{
		{"texts", `{"type":"object","properties":{"a":{"type":"string","title":"A","description":"d","minLength":1,"maxLength":9,"format":"email","default":"x","x-hint":"y"}},"required":["a","b"]}`,
			`{"type":"object","properties":{"a":{"type":"string","title":"\"s\": A","description":"\"s\": \"d\"","format":"email","minLength":1,"maxLength":9}},"required":["a"]}`,
			`{"action":"accept","content":{"a":"b","decision":"approved"},"_meta":{"x":1}}`, `{"action":"accept","content":{"a":"b"}}`},
		{"another format", `{"properties":{"a":{"type":"string","format":"password"}}}`,
			`{"type":"object","properties":{"a":{"type":"string","title":"\"s\": a"}}}`, `{"action":"accept","content":{"a":"b"}}`, `{"action":"accept","content":{"a":"b"}}`},
		{"numbers", `{"type":"object","properties":{"n":{"type":"number","minimum":0.5,"maximum":9},"i":{"type":"integer"},"b":{"type":"boolean","default":true}}}`,
			`{"type":"object","properties":{"b":{"type":"boolean","title":"\"s\": b"},"i":{"type":"integer","title":"\"s\": i"},"n":{"type":"number","title":"\"s\": n","minimum":0.5,"maximum":9}}}`,
			`{"action":"accept","content":{"n":1.5,"i":9007199254740993,"b":false}}`, `{"action":"accept","content":{"b":false,"i":9007199254740993,"n":1.5}}`},
		{"options", `{"type":"object","properties":{"e":{"type":"string","enum":["x","y"],"enumNames":["X","Y\n"]}}}`,
			`{"type":"object","properties":{"e":{"type":"string","title":"\"s\": e","enum":["x","y"],"enumNames":["X","Y"]}}}`,
			`{"action":"accept","content":{"e":"x"}}`, `{"action":"accept","content":{"e":"x"}}`},
		{"an option that is none", `{"type":"object","properties":{"e":{"type":"string","enum":["x"]}}}`,
			`{"type":"object","properties":{"e":{"type":"string","title":"\"s\": e","enum":["x"]}}}`, `{"action":"accept","content":{"e":"z"}}`, `{"action":"decline"}`},
		{"an option of another kind", `{"type":"object","properties":{"e":{"type":"string","enum":[""]}}}`,
			`{"type":"object","properties":{"e":{"type":"string","title":"\"s\": e","enum":[""]}}}`, `{"action":"accept","content":{"e":null}}`, `{"action":"decline"}`},
		{"options with titles", `{"type":"object","properties":{"e":{"type":"string","oneOf":[{"const":"x","title":"X","description":"d"}]}}}`,
			`{"type":"object","properties":{"e":{"type":"string","title":"\"s\": e","oneOf":[{"const":"x","title":"X"}]}}}`, `{"action":"accept","content":{"e":"x"}}`, `{"action":"accept","content":{"e":"x"}}`},
		{"several options", `{"type":"object","properties":{"e":{"type":"array","minItems":1,"items":{"type":"string","enum":["x","y"],"title":"t"}},"f":{"type":"array","items":{"anyOf":[{"const":"x","title":"X"}]}}}}`,
			`{"type":"object","properties":{"e":{"type":"array","title":"\"s\": e","minItems":1,"items":{"type":"string","enum":["x","y"]}},"f":{"type":"array","title":"\"s\": f","items":{"type":"string","anyOf":[{"const":"x","title":"X"}]}}}}`,
			`{"action":"accept","content":{"e":["y","x"],"f":[]}}`, `{"action":"accept","content":{"e":["y","x"],"f":[]}}`},
		{"a wrong kind", `{"type":"object","properties":{"n":{"type":"number"}}}`, `{"type":"object","properties":{"n":{"type":"number","title":"\"s\": n"}}}`, `{"action":"accept","content":{"n":"1"}}`, `{"action":"decline"}`},
		{"none", ``, `{"type":"object","properties":{}}`, `{"action":"accept"}`, `{"action":"accept","content":{}}`},
		{"declined", `{"type":"object"}`, `{"type":"object","properties":{}}`, `{"action":"decline","content":{"feedback":"f"}}`, `{"action":"decline"}`},
		{"cancelled", `{"type":"object"}`, `{"type":"object","properties":{}}`, `{"action":"cancel"}`, `{"action":"cancel"}`},
		{"nonsense", `{"type":"object"}`, `{"type":"object","properties":{}}`, `{"action":"perhaps"}`, `{"action":"decline"}`},
		{"twice over", `{"type":"object"}`, `{"type":"object","properties":{}}`, `{"action":"accept","action":"decline"}`, `{"action":"decline"}`},
		{"no object", `{"type":"object"}`, `{"type":"object","properties":{}}`, `7`, `{"action":"decline"}`},
		{"content of text", `{"type":"object"}`, `{"type":"object","properties":{}}`, `{"action":"accept","content":"x"}`, `{"action":"decline"}`},
		{"flat", `{"type":"object"}`, `{"type":"object","properties":{}}`, `{"decision":"approved"}`, `{"action":"decline"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			params := `{"message":"m"}`
			if tt.schema != "" {
				params = `{"message":"m","requestedSchema":` + tt.schema + `}`
			}
			f := must.Get(approval.ServerQuestion("s", json.RawMessage(params)))(t)
			got := must.Get(f.Question().Params(elicit.Client{ProtocolVersion: "2025-06-18"}, nil))(t)
			must.Equal(t, "the result", `{"message":"The MCP server \"s\" asks: \"m\"","requestedSchema":`+tt.shown+`}`, string(got))
			must.Equal(t, "answer", tt.want, string(f.Read(json.RawMessage(tt.answer))))
		})
	}
}

// TestForeignRefused has questions that cannot be asked.
func TestForeignRefused(t *testing.T) {
	many := func(n int, format string) string {
		all := make([]string, n)
		for i := range all {
			all[i] = fmt.Sprintf(format, i)
		}
		return strings.Join(all, ",")
	}
	form := func(field string) string {
		return `{"message":"m","requestedSchema":{"properties":{"f":` + field + `}}}`
	}
	for name, params := range map[string]string{
		"no object":               `7`,
		"a message of numbers":    `{"message":7}`,
		"a member twice":          `{"message":"m","message":"n"}`,
		"a URL":                   `{"message":"m","mode":"url","url":"https://evil.example","elicitationId":"e"}`,
		"a mode of another":       `{"message":"m","mode":"openai/form"}`,
		"a form of text":          `{"message":"m","requestedSchema":"x"}`,
		"a list":                  `{"message":"m","requestedSchema":{"type":"array"}}`,
		"many fields":             `{"message":"m","requestedSchema":{"properties":{` + many(33, `"f%d":{"type":"string"}`) + `}}}`,
		"a field that hides":      `{"message":"m","requestedSchema":{"properties":{"a\u200bb":{"type":"string"}}}}`,
		"a long field":            `{"message":"m","requestedSchema":{"properties":{"` + strings.Repeat("a", 65) + `":{"type":"string"}}}}`,
		"a field of nothing":      form(`null`),
		"an object in it":         form(`{"type":"object","properties":{}}`),
		"two types":               form(`{"type":["string","null"]}`),
		"a list of texts":         form(`{"type":"array","items":{"type":"string"}}`),
		"a list of lists":         form(`{"type":"array","items":{"items":{"enum":["x"]}}}`),
		"a list of nothing":       form(`{"type":"array"}`),
		"items of a text":         form(`{"type":"string","items":{"enum":["x"]}}`),
		"options of a number":     form(`{"type":"number","enum":["x"]}`),
		"options of numbers":      form(`{"type":"string","enum":[1]}`),
		"options that are hidden": form(`{"type":"string","oneOf":[{"const":"x\ny","title":"x"}]}`),
		"options beside a list":   form(`{"type":"array","anyOf":[{"const":"x","title":"x"}],"items":{"enum":["x"]}}`),
		"many options":            form(`{"type":"string","enum":[` + many(300, `"%d"`) + `]}`),
	} {
		t.Run(name, func(t *testing.T) {
			if f, err := approval.ServerQuestion("s", json.RawMessage(params)); err == nil {
				p, _ := f.Question().Params(elicit.Client{}, nil)
				t.Errorf("it is asked: %s", p)
			} else {
				seen(t, err.Error())
			}
		})
	}
}

// TestForeignLines bounds the lines, the characters and the bytes of a text, and says what is left out.
func TestForeignLines(t *testing.T) {
	for _, tt := range []struct {
		text  string
		lines int
		last  string
	}{
		{strings.Repeat("a\n", 20), 20, `x: "a"`},
		{strings.Repeat("a\n\n \r", 21), 21, "x: (1 more lines are not shown)"},
		{strings.Repeat("a\u2028", 30), 21, "x: (10 more lines are not shown)"},
		{strings.Repeat("a", 64<<10), 1, ""},
		{strings.Repeat("a", 64<<10+1), 2, "x: (1 more bytes are not shown)"},
		{strings.Repeat(strings.Repeat("b", 5000)+"\n", 11), 0, "more lines are not shown)"},
	} {
		got := approval.ShowLines("x", tt.text)
		if last := got[len(got)-1]; tt.lines > 0 && len(got) != tt.lines || !strings.Contains(last, tt.last) {
			t.Errorf("%d lines, the last %.80q; want %d, %q", len(got), last, tt.lines, tt.last)
		}
		if n := len(strings.Join(got, "\n")); n > 6000 {
			t.Errorf("%d bytes are shown", n)
		}
	}
	for name, plain := range map[string]bool{strings.Repeat("a", 64): true, strings.Repeat("a", 65): false} {
		if got := elicit.ShowName(name); (got == `"`+name+`"`) != plain {
			t.Errorf("%d characters: %s", len(name), got)
		}
	}
}

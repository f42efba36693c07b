package page

import (
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/plain"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/go-json-experiment/json"
)

// fill sets each text of a struct to a word of its own. Its maps have texts already.
func fill(of any) {
	v := reflect.ValueOf(of).Elem()
	for i, field := range v.Fields() {
		switch word := "word" + i.Name; field.Interface().(type) {
		case string:
			field.SetString(word)
		case []string:
			field.Set(reflect.ValueOf([]string{word + "1", word + "2"}))
		}
	}
}

// TestFacts compares the card of a question with what a client is told, over all makers of questions and all that they are
// given: each word of the request that the client reads is on the card, and so is each line that is not only such words.
func TestFacts(t *testing.T) {
	to, word := "/to", regexp.MustCompile(`word\w+`)
	exec, denied, access := approval.Command{}, approval.Overrule{}, approval.Access{}
	patch := approval.Patch{
		Changes: map[string]protocol.FileChange{
			"/work/a": {Add: &protocol.FileContent{Content: "wordAdded"}}, "/work/b": {Update: &protocol.FileUpdate{UnifiedDiff: "+wordDiff\n", MovePath: &to}},
		},
		Links: map[string]string{to: "wordLink"}, Why: map[string]string{"/work/a": "wordWhy", to: "wordWhyTo"},
	}
	for _, one := range []any{&exec, &patch, &access.Access, &denied.Refused} {
		fill(one)
	}
	check := func(subject approval.Subject, q *elicit.Question) {
		t.Helper()
		view := viewQuestion(&approval.Request{Subject: subject, Question: q})
		card := string(must.Get(json.Marshal(view))(t))
		if strings.Contains(q.Message, plain.Hidden) != view.Hidden {
			t.Errorf("characters are hidden: %t\n%s\nand the client reads\n%s", view.Hidden, card, q.Message)
		}
		for _, word := range word.FindAllString(q.Message, -1) {
			if !strings.Contains(card, word) {
				t.Errorf("no %s on the card\n%s\nand the client reads\n%s", word, card, q.Message)
			}
		}
		for line := range strings.SplitSeq(q.Message, "\n") {
			shown := string(must.Get(json.Marshal(line))(t))
			if line != plain.Hidden && !strings.HasPrefix(line, "Allow ") && !strings.HasPrefix(line, "Reason given by the model: ") && !strings.HasPrefix(line, "- ") &&
				!strings.HasPrefix(line, approval.DiffIndent) && !strings.Contains(card, strings.Trim(shown, `"`)) {
				t.Errorf("not on the card\n%s\nis\n%s", card, line)
			}
		}
	}
	var flags []reflect.Value
	for _, field := range reflect.ValueOf(&exec).Elem().Fields() {
		if field.Kind() == reflect.Bool {
			flags = append(flags, field)
		}
	}
	for set := range 1 << len(flags) {
		for i, flag := range flags {
			flag.SetBool(set>>i&1 > 0)
		}
		check(exec, exec.Question("", ""))
	}
	check(patch, patch.Question("", ""))
	check(access, access.Question("Codex", ""))
	check(denied, denied.Question("", ""))
	check(approval.Other{}, &elicit.Question{Message: "Allow Codex to call the tool?\nIts arguments: `x`"})
	const hidden = "/work/\u200b"
	for _, e := range []approval.Patch{
		{Cwd: "/work", Changes: map[string]protocol.FileChange{hidden: {Add: &protocol.FileContent{}}}},
		{Cwd: "/work", Changes: map[string]protocol.FileChange{"/work/a": {Add: &protocol.FileContent{}}}, Links: map[string]string{"/work/a": hidden}},
	} {
		check(e, e.Question("", ""))
	}
	in := approval.Command{Command: []string{"ls"}, Cwd: hidden}
	check(in, in.Question("", ""))
}

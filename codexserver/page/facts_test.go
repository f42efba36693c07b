package page

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/go-json-experiment/json"
)

// fill sets each text of a value to a word of its own, which it returns.
func fill(v reflect.Value) (words []string) {
	word := func() reflect.Value {
		words = append(words, fmt.Sprintf("word%dx", len(words)))
		return reflect.ValueOf(words[len(words)-1])
	}
	for _, field := range v.Fields() {
		switch f := field; {
		case f.Kind() == reflect.String && f.Type() == reflect.TypeFor[string]():
			f.Set(word())
		case f.Type() == reflect.TypeFor[[]string]():
			f.Set(reflect.ValueOf([]string{word().String(), word().String()}))
		case f.Type() == reflect.TypeFor[map[string]string]():
			f.Set(reflect.ValueOf(map[string]string{"/work/a": word().String(), "/to": word().String()}))
		case f.Type() == reflect.TypeFor[map[string]protocol.FileChange]():
			to := "/to"
			f.Set(reflect.ValueOf(map[string]protocol.FileChange{
				"/work/a": {Add: &protocol.FileContent{Content: word().String()}}, "/work/b": {Update: &protocol.FileUpdate{UnifiedDiff: "+" + word().String() + "\n", MovePath: &to}},
			}))
		}
	}
	return words
}

// TestFacts compares the card of a question with what a client is told, over all makers of questions and all that they are
// given: each word of the request that the client reads is on the card, and so is each line that is not only such words.
func TestFacts(t *testing.T) {
	var exec protocol.ExecApprovalRequest
	var patch protocol.PatchApprovalRequest
	var access protocol.AccessRequest
	var denied protocol.OverruleRequest
	words := [][]string{fill(reflect.ValueOf(&exec).Elem()), fill(reflect.ValueOf(&patch).Elem()), fill(reflect.ValueOf(&access.Access).Elem()), fill(reflect.ValueOf(&denied.Refused).Elem())}
	check := func(name string, words []string, event protocol.EventMsg, q *elicit.Question) {
		t.Helper()
		card := string(must.Get(json.Marshal(viewQuestion(&approval.Request{Event: event, Question: q})))(t))
		for _, word := range words {
			if strings.Contains(q.Message, word) && !strings.Contains(card, word) {
				t.Errorf("%s: no %s on the card\n%s\nand the client reads\n%s", name, word, card, q.Message)
			}
		}
		for line := range strings.SplitSeq(q.Message, "\n") {
			shown := string(must.Get(json.Marshal(line))(t))
			if !strings.HasPrefix(line, "Allow ") && !strings.HasPrefix(line, "Reason given by the model: ") && !strings.HasPrefix(line, "- ") &&
				!strings.HasPrefix(line, approval.DiffIndent) && !strings.Contains(card, strings.Trim(shown, `"`)) {
				t.Errorf("%s: not on the card\n%s\nis\n%s", name, card, line)
			}
		}
	}
	v := reflect.ValueOf(&exec).Elem()
	var flags []reflect.Value
	for _, field := range v.Fields() {
		if field.Kind() == reflect.Bool {
			flags = append(flags, field)
		}
	}
	for set := range 1 << len(flags) {
		for i, flag := range flags {
			flag.SetBool(set>>i&1 > 0)
		}
		check(fmt.Sprintf("%+v", exec), words[0], exec, approval.ExecQuestion(exec, "", ""))
	}
	check("patch", words[1], patch, approval.PatchQuestion(patch, "", ""))
	check("access", words[2], access, approval.AccessQuestion(access, "Codex"))
	check("overrule", words[3], denied, approval.OverruleQuestion(denied, ""))
	const hidden = "/work/\u200b"
	for _, e := range []protocol.PatchApprovalRequest{
		{Cwd: "/work", Changes: map[string]protocol.FileChange{hidden: {Add: &protocol.FileContent{}}}},
		{Cwd: "/work", Changes: map[string]protocol.FileChange{"/work/a": {Add: &protocol.FileContent{}}}, Links: map[string]string{"/work/a": hidden}},
	} {
		if q := approval.PatchQuestion(e, "", ""); !strings.Contains(q.Message, "(contains hidden characters)") || !viewQuestion(&approval.Request{Event: e, Question: q}).Hidden {
			t.Errorf("the card does not say that characters are hidden: %+v", e)
		}
	}
	if e := (protocol.ExecApprovalRequest{Command: []string{"ls"}, Cwd: hidden}); !viewQuestion(&approval.Request{Event: e, Question: &elicit.Question{}}).Hidden {
		t.Error("the card does not say that the folder has hidden characters")
	}
	check("tool", nil, protocol.RawEvent{}, &elicit.Question{Message: "Allow Codex to call the tool?\nIts arguments: `x`"})
	if card := viewQuestion(&approval.Request{Event: patch, Question: &elicit.Question{}}); card.Files[0].Why != patch.Why["/work/a"] || card.Files[1].Why != patch.Why["/to"] {
		t.Errorf("the card says why as %+v", card.Files)
	}
}

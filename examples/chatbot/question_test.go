package main

import (
	"bytes"
	"encoding/json"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/client"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/google/go-cmp/cmp"
)

// TestOffered checks that a question has buttons for exactly what it offers.
func TestOffered(t *testing.T) {
	always := `{"properties": {"decision": {"oneOf": [{"const": "approved_always", "title": "Always allow go test"}, {"const": "denied", "title": "Deny"}]}, "feedback": {}}}`
	for form, want := range map[string][]offer{
		`{"properties": {}}`: {{elicit.Approved, "Approve"}, {elicit.Denied, "Deny"}, {elicit.Abort, "Deny and stop"}},
		always:               {{elicit.ApprovedAlways, "Always allow go test"}, {elicit.Denied, "Deny"}},
		`{"properties": {"name": {"type": "string"}}}`:                        nil,
		`{"properties": {"decision": {"oneOf": []}}, "required": ["number"]}`: nil,
		`{"properties": 1}`: nil,
		``:                  nil,
	} {
		if diff := cmp.Diff(want, offered(&client.Question{Form: json.RawMessage(form)})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", form, diff)
		}
	}
}

// TestAlways checks that all of a lasting rule is in the message, where no phone cuts it.
func TestAlways(t *testing.T) {
	chat := newChat(t)
	b := newBot(chat.client(), owner, "", log.New(t.Output(), "", 0))
	chat.run(t, b, nil)
	decided := make(chan elicit.Outcome)
	go func() {
		decided <- b.ask(t.Context(), &client.Question{Message: "Run go?", Form: json.RawMessage(
			`{"properties": {"decision": {"oneOf": [{"const": "approved_always", "title": "Always allow go test"}]}}}`)})
	}()
	asked := chat.next(t, "sendMessage")
	if asked.Text != "Run go?\n\nAlways allow go test" {
		t.Errorf("the question is %q", asked.Text)
	}
	forged := asked
	forged.Markup.Rows = [][]button{{{"Approve", strings.ReplaceAll(asked.Markup.Rows[0][0].Data, "_always", "")}}} // not offered
	chat.press(owner, owner, forged, "Approve")
	if note := chat.next(t, "answerCallbackQuery"); note.Text == "" {
		t.Error("a decision that was not offered counts")
	}
	chat.press(owner, owner, asked, "Always allow")
	if out := <-decided; out.Decision != elicit.ApprovedAlways {
		t.Errorf("decided %+v", out)
	}
}

// TestCannotAsk checks that what a chat cannot ask is denied, and that the person learns it.
func TestCannotAsk(t *testing.T) {
	for name, q := range map[string]*client.Question{
		"too long": {Message: strings.Repeat("😀", maxText/2+1), Form: json.RawMessage(`{}`)},
		"a form":   {Message: "Your name?", Form: json.RawMessage(`{"properties": {"name": {}}}`)},
	} {
		chat := newChat(t)
		if out := newBot(chat.client(), owner, "", nil).ask(t.Context(), q); out.Decision != elicit.Denied {
			t.Errorf("%s: %+v", name, out)
		}
		if c := chat.next(t, "sendMessage"); !strings.HasPrefix(c.Text, "Denied, because") || c.Markup.Rows != nil || !fits(c.Text) {
			t.Errorf("%s: %+v", name, c)
		}
	}
}

// TestToken checks that nothing names the token: no error, no log, no other server, no command.
func TestToken(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("asked with %v", r.Header) }))
	defer elsewhere.Close()
	redirecting := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	defer redirecting.Close()
	for name, base := range map[string]string{"nothing listens": "http://127.0.0.1:1", "no URL": "://", "redirect": redirecting.URL} {
		var lines bytes.Buffer
		api := &telegram{base: base, token: secret, http: httpClient()}
		out := newBot(api, owner, "", log.New(&lines, "", 0)).ask(t.Context(), &client.Question{Message: "Run?", Form: json.RawMessage(`{}`)})
		if out.Decision != elicit.Denied || lines.Len() == 0 || strings.Contains(lines.String(), "SECRET") {
			t.Errorf("%s: %+v, %q", name, out, lines.String())
		}
	}
	for token, ok := range map[string]bool{secret: true, "": false, "SECRET": false, "123:SECRET/../": false} {
		t.Setenv("TELEGRAM_TOKEN", token)
		if _, err := takeToken(); (err == nil) != ok || err != nil && strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%q: %v", token, err)
		}
		if _, left := os.LookupEnv("TELEGRAM_TOKEN"); left {
			t.Errorf("commands get the token %q", token)
		}
	}
}

// TestFirstPress checks that a second press changes nothing, also before the question has ended.
func TestFirstPress(t *testing.T) {
	chat := newChat(t)
	b := newBot(chat.client(), owner, "", log.New(t.Output(), "", 0))
	one := &question{[]offer{{elicit.Approved, ""}, {elicit.Denied, ""}}, make(chan offer, 2)}
	b.open["ID"] = one
	b.pressed(t.Context(), &press{Data: "ID denied"})
	b.pressed(t.Context(), &press{Data: "ID approved"})
	if first, second := chat.next(t, "answerCallbackQuery"), chat.next(t, "answerCallbackQuery"); first.Text != "" || second.Text == "" || len(one.answer) != 1 {
		t.Errorf("first %q, second %q, %d answers", first.Text, second.Text, len(one.answer))
	}
}

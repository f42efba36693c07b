//go:build realcodex

package appserver_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// TestRealFull takes back a message that did not fit the context window, in another process
// than the one that failed.
func TestRealFull(t *testing.T) {
	full := providertest.Turn{Failed: &providertest.Failure{Code: "context_length_exceeded", Message: "too long"}}
	r := newReal(t, "", providertest.Say("one"), full, providertest.Say("two"))
	h := &recorder{}
	conv := r.start(t, h, protocol.Config{})
	if err := conv.Turn(t.Context(), text("first wish")); err != nil {
		t.Fatal(err)
	}
	err := conv.Turn(t.Context(), text("the oversized letter"))
	if err == nil || !strings.Contains(err.Error(), "codex-reply") || !strings.Contains(err.Error(), "rollback") {
		t.Errorf("the error does not name the argument: %v", err)
	}
	r.restart(t)
	again := r.resume(t, conv, &recorder{}, protocol.Config{Cwd: r.cwd})
	in := text("second wish")
	in.Rollback = 1
	if err := again.Turn(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	if body := r.last(); strings.Contains(body, "oversized letter") || !strings.Contains(body, "first wish") || !strings.Contains(body, "second wish") {
		t.Errorf("the last request: %s", body)
	}
}

// TestRealOldForm resumes a conversation of the native engine, which today's Codex cannot take
// turns back from. It can summarise it.
func TestRealOldForm(t *testing.T) {
	const id = "0199a2b3-0000-7000-8000-00000000000b"
	r := newReal(t, "", providertest.Say("THE SUMMARY"), providertest.Say("three"))
	path := filepath.Join(r.home, "sessions", "2026", "01", "02", "rollout-2026-01-02T03-04-05-"+id+".jsonl")
	lines := []string{
		`"session_meta","payload":{"id":"` + id + `","timestamp":"2026-01-02T03:04:05.000Z","cwd":` + fmt.Sprintf("%q", r.cwd) + `,"originator":"codex_mcp","cli_version":"1.0.0","instructions":null}`,
		itemLine("user", "input_text", "first wish"), userLine("first wish"),
		itemLine("assistant", "output_text", "one"),
		itemLine("user", "input_text", "second wish"), userLine("second wish"),
		itemLine("assistant", "output_text", "two"),
		// What the native engine writes when the second prompt is taken back.
		`"event_msg","payload":{"type":"thread_rolled_back","num_turns":1}`,
		`"compacted","payload":{"message":"m","replacement_history":[{"type":"message","role":"user","content":[{"type":"input_text","text":"first wish"}]},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"one"}]}]}`,
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	writeFile(t, path, `{"timestamp":"2026-01-02T03:04:05.000Z","type":`+strings.Join(lines, "}\n"+`{"timestamp":"2026-01-02T03:04:05.000Z","type":`)+"}\n")
	h := &recorder{}
	conv, err := r.engine.Resume(t.Context(), path, protocol.Config{Cwd: r.cwd}, h)
	if err != nil {
		t.Fatal(err)
	}
	has, lacks := "first wish", "second wish"
	err = conv.Turn(t.Context(), protocol.TurnInput{Rollback: 1})
	if refused := err != nil && strings.Contains(err.Error(), "summarise it with compact"); refused != can(t, newForm) {
		t.Errorf("a rollback: %v", err)
	} else if !refused {
		has, lacks = "", "first wish"
	}
	in := text("third wish")
	in.Compact = true
	if err := conv.Turn(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	all := r.Requests()
	if summary := string(all[0].Body); !strings.Contains(summary, has) || strings.Contains(summary, lacks) {
		t.Errorf("the prompt that was taken back is there, or the other is not: %s", summary)
	}
	if body := string(all[1].Body); !strings.Contains(body, "THE SUMMARY") || !strings.Contains(body, "third wish") {
		t.Errorf("the last request: %s", body)
	}
}

func itemLine(role, kind, text string) string {
	return fmt.Sprintf(`"response_item","payload":{"type":"message","role":%q,"content":[{"type":%q,"text":%q}]}`, role, kind, text)
}

func userLine(text string) string {
	return fmt.Sprintf(`"event_msg","payload":{"type":"user_message","message":%q,"kind":"plain"}`, text)
}

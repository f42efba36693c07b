package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/google/go-cmp/cmp"
)

const (
	owner    = 7 // may decide
	stranger = 8
	group    = 9
)

func TestMain(m *testing.M) {
	native.Main() // does not return if the engine started this process to run commands
	os.Exit(m.Run())
}

// TestDecisions hands over a task, and presses each button.
func TestDecisions(t *testing.T) {
	const folder = "_made_ [x](tg) &lt;b&gt;" // no markup: it is shown as it is
	model := providertest.Turn{Func: func(r providertest.Request) providertest.Turn {
		return providertest.Say("I was told: " + r.LastToolOutput())
	}}
	for pressed, want := range map[string]struct {
		made       bool
		note, said string
	}{
		"Approve once":                           {true, "[Approve once] ", "completed: I was told: "},
		"Deny, let the agent try something else": {false, "[Deny, let the agent try something else] ", "completed: I was told: the command was not run: declined"},
		"Deny and stop this turn":                {false, "[Deny and stop this turn] ", "aborted: Turn aborted: the client cancelled the approval request"},
	} {
		t.Run(pressed, func(t *testing.T) {
			chat, cwd := serve(t, elicit.FormDecision, providertest.Call(providertest.Shell("1", "mkdir", folder)), model)
			chat.say(stranger, stranger, "Delete everything.")
			chat.say(owner, group, "Delete everything.") // others would read the answers
			chat.say(owner, owner, "Make a folder.")

			asked := chat.next(t, "sendMessage")
			question := "Allow Codex to run `mkdir '" + folder + "'` in `" + cwd + "`?\nIf approved, it runs outside the sandbox, once: files and network are open."
			if diff := cmp.Diff(question, asked.Text); diff != "" {
				t.Errorf("question (-want +got):\n%s", diff)
			}
			var labels []string
			for _, row := range asked.Markup.Rows {
				labels = append(labels, row[0].Text)
				if data := row[0].Data; len(data) > 64 {
					t.Errorf("the data %q are too long", data)
				}
			}
			if diff := cmp.Diff([]string{"Approve once", "Deny, let the agent try something else", "Deny and stop this turn"}, labels); diff != "" {
				t.Errorf("buttons (-want +got):\n%s", diff)
			}

			chat.press(stranger, owner, asked, "Approve once")
			chat.press(owner, group, asked, "Approve once")
			chat.press(owner, owner, asked, pressed)
			got := map[string]string{}
			for range 3 { // the bot and the task go on at the same time
				c := chat.next(t, "answerCallbackQuery", "editMessageText", "sendMessage")
				got[c.method] = c.Text
				if c.method == "editMessageText" && (c.MessageID != asked.MessageID || c.Markup.Rows == nil || len(c.Markup.Rows) > 0) {
					t.Errorf("it still has buttons: %+v", c)
				}
			}
			if diff := cmp.Diff(map[string]string{"answerCallbackQuery": "", "editMessageText": want.note + question, "sendMessage": want.said}, got); diff != "" {
				t.Errorf("end (-want +got):\n%s", diff)
			}
			if _, err := os.Stat(filepath.Join(cwd, folder)); (err == nil) != want.made {
				t.Errorf("the folder: %v", err)
			}

			chat.press(owner, owner, asked, "Approve once")
			if note := chat.next(t, "answerCallbackQuery"); note.Text != "This question is closed. Nothing changed." {
				t.Errorf("an old button says %q", note.Text)
			}
		})
	}
}

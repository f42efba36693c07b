package main

import (
	"log"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/client"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/examples/internal/exampletest"
)

// TestStop ends a task with an open question, and continues the conversation.
func TestStop(t *testing.T) {
	model := providertest.Turn{Func: func(r providertest.Request) providertest.Turn {
		if strings.Contains(string(r.Body), "Make a folder.") {
			return providertest.Say("I remember.")
		}
		return providertest.Say("I do not know you.")
	}}
	chat, _ := serve(t, elicit.FormEmpty, providertest.Call(providertest.Shell("1", "mkdir", "made")), model, model)
	chat.say(owner, owner, "Make a folder.")
	asked := chat.next(t, "sendMessage")
	if labels := asked.Markup.Rows; len(labels) != 3 || labels[2][0].Text != "Deny and stop" {
		t.Errorf("buttons %v", labels)
	}
	chat.say(owner, owner, "And another one.")
	chat.expect(t, "A task runs. Wait for its result, or send /stop.")
	chat.say(owner, owner, "/stop")
	if end := chat.next(t, "editMessageText"); !strings.HasPrefix(end.Text, "[Not needed any more.] ") {
		t.Errorf("the question says %q", end.Text)
	}
	chat.expect(t, "The task was stopped.")
	chat.say(owner, owner, "Do you remember?")
	chat.expect(t, "completed: I remember.")
	chat.say(owner, owner, "/new")
	chat.expect(t, "The next message begins a new conversation.")
	chat.say(owner, owner, "Do you remember?")
	chat.expect(t, "completed: I do not know you.")
}

// serve runs a bot with a scripted model and a chat. Its folder is cwd.
func serve(t *testing.T, form elicit.Form, turns ...providertest.Turn) (_ *chat, cwd string) {
	t.Helper()
	chat, cwd := newChat(t), exampletest.Repository(t)
	b := newBot(chat.client(), owner, cwd, log.New(t.Output(), "", 0))
	c := exampletest.Start(t, &client.Options{Server: exampletest.Server(t, elicit.Options{Schema: form}, turns...), Ask: b.ask})
	chat.run(t, b, c)
	return chat, cwd
}

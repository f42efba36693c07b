package main

import (
	"context"
	"fmt"
	"log"
	"strings"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/client"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// last is how long the end of a task or a question may take to reach the chat.
const last = 10 * time.Second

// bot connects a chat with a server.
type bot struct {
	api   *telegram
	user  int64 // also the id of the private chat
	log   *log.Logger
	pause time.Duration // after a poll that failed

	mu   sync.Mutex
	open map[string]*question // by the random name that its buttons have
	task client.Task          // the next one
	stop func()               // ends the task that runs; nil without one
}

func newBot(api *telegram, user int64, cwd string, log *log.Logger) *bot {
	task := client.Task{Cwd: cwd, Approvals: protocol.ApprovalUntrusted}
	return &bot{api: api, user: user, log: log, pause: 5 * time.Second, open: map[string]*question{}, task: task}
}

// run reads the chat until ctx ends, and then waits for the task.
func (b *bot) run(ctx context.Context, c *client.Client) error {
	var tasks sync.WaitGroup
	defer tasks.Wait()
	for offset := int64(0); ctx.Err() == nil; {
		var updates []update
		params := map[string]any{"offset": offset, "timeout": int(poll.Seconds()), "allowed_updates": []string{"message", "callback_query"}}
		if err := b.api.call(ctx, "getUpdates", params, &updates); err != nil && ctx.Err() == nil {
			b.log.Print(err)
			select {
			case <-time.After(b.pause):
			case <-ctx.Done():
			}
		}
		for _, u := range updates {
			offset = max(offset, u.ID+1) // the next poll confirms this one
			switch m := u.Message; {
			case u.Press != nil && u.Press.From.ID == b.user && u.Press.Message.Chat.ID == b.user:
				b.pressed(ctx, u.Press)
			case m != nil && m.Text != "" && m.From.ID == b.user && m.Chat.ID == b.user:
				b.read(ctx, c, m.Text, &tasks)
			}
		}
	}
	return ctx.Err()
}

// read starts a task, unless one runs, or does what a command says.
func (b *bot) read(ctx context.Context, c *client.Client, text string, tasks *sync.WaitGroup) {
	b.mu.Lock()
	task, stop := b.task, b.stop
	if text == "/new" && stop == nil {
		b.task.Thread = ""
	}
	b.mu.Unlock()
	switch {
	case text == "/stop" && stop != nil:
		stop()
	case stop != nil:
		b.say(ctx, "A task runs. Wait for its result, or send /stop.")
	case text == "/new":
		b.say(ctx, "The next message begins a new conversation.")
	case strings.HasPrefix(text, "/"):
		b.say(ctx, "Send a task in plain words. /new begins a new conversation, /stop ends a task.")
	default:
		ctx, stop := context.WithCancel(ctx)
		b.mu.Lock()
		b.stop = stop // only this goroutine starts tasks
		b.mu.Unlock()
		task.Prompt = text
		tasks.Go(func() { b.work(ctx, c, task) })
	}
}

// work runs a task and says its result.
func (b *bot) work(ctx context.Context, c *client.Client, task client.Task) {
	r, err := c.Run(ctx, task)
	reply := fmt.Sprintf("%s: %s", r.Status, elicit.ShowText(r.Answer))
	switch {
	case ctx.Err() != nil:
		reply = "The task was stopped."
	case err != nil:
		reply = "failed: " + elicit.ShowText(err.Error())
	}
	b.mu.Lock()
	b.stop()
	b.stop = nil
	if r.Thread != "" {
		b.task.Thread = r.Thread
	}
	b.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), last)
	defer cancel()
	b.say(ctx, reply)
}

func (b *bot) say(ctx context.Context, text string) {
	if _, err := b.api.send(ctx, b.user, cut(text)); err != nil {
		b.log.Print(err)
	}
}

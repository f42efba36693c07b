package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/client"
	"github.com/go-json-experiment/json"
)

const secret = "123:SECRET"

// chat is a Bot API on loopback. Its methods are those of the people.
type chat struct {
	url     string
	updates chan update
	calls   chan call
}

// call is a call of the bot.
type call struct {
	method    string
	Chat      int64          `json:"chat_id"`
	MessageID int64          `json:"message_id"`
	Text      string         `json:"text"`
	Preview   map[string]any `json:"link_preview_options"`
	Markup    struct {
		Rows [][]button `json:"inline_keyboard"`
	} `json:"reply_markup"`
	Query string `json:"callback_query_id"`
}

func newChat(t *testing.T) *chat {
	c := &chat{updates: make(chan update, 100), calls: make(chan call, 100)}
	var next, messages int64
	var unconfirmed []update
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		method, ok := strings.CutPrefix(r.URL.Path, "/bot"+secret+"/")
		if !ok {
			t.Errorf("path %s", r.URL.Path)
		}
		var result any = true
		if method == "getUpdates" { // one at a time: the bot has one poll
			var p struct {
				Offset int64 `json:"offset"`
			}
			if err := json.UnmarshalRead(r.Body, &p); err != nil {
				t.Error(err)
			}
			unconfirmed = slices.DeleteFunc(unconfirmed, func(u update) bool { return u.ID < p.Offset })
			if len(unconfirmed) == 0 {
				select {
				case u := <-c.updates:
					next++
					u.ID = next
					unconfirmed = append(unconfirmed, u)
				case <-r.Context().Done():
				}
			}
			result = unconfirmed
		} else {
			one := call{method: method}
			if err := json.UnmarshalRead(r.Body, &one, json.RejectUnknownMembers(true)); err != nil { // such as parse_mode
				t.Errorf("%s: %v", method, err)
			}
			if method != "answerCallbackQuery" && (one.Chat != owner || one.Preview["is_disabled"] != true) {
				t.Errorf("%s: %+v", method, one)
			}
			if method == "sendMessage" {
				messages++
				one.MessageID = messages
				result = message{ID: messages, Chat: sender{one.Chat}}
			}
			c.calls <- one
		}
		if err := json.MarshalWrite(w, map[string]any{"ok": true, "result": result}); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	c.url = server.URL
	return c
}

func (c *chat) client() *telegram { return &telegram{base: c.url, token: secret, http: httpClient()} }

// run runs the bot until the test ends.
func (c *chat) run(t *testing.T, b *bot, server *client.Client) {
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- b.run(ctx, server) }()
	t.Cleanup(func() { stop(); <-ended })
}

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/go-json-experiment/json"
)

const (
	poll    = 50 * time.Second // how long the server waits for news
	maxText = 4096             // of a message, in UTF-16 code units
)

// telegram is a client of the Bot API, https://core.telegram.org/bots/api.
type telegram struct {
	base, token string
	http        *http.Client
}

type update struct {
	ID      int64    `json:"update_id"`
	Message *message `json:"message"`
	Press   *press   `json:"callback_query"`
}

type message struct {
	ID   int64  `json:"message_id"`
	From sender `json:"from"`
	Chat sender `json:"chat"`
	Text string `json:"text"`
}

type sender struct {
	ID int64 `json:"id"`
}

// press is the press of a button.
type press struct {
	ID      string  `json:"id"`
	From    sender  `json:"from"`
	Message message `json:"message"`
	Data    string  `json:"data"`
}

type button struct {
	Text string `json:"text"`
	Data string `json:"callback_data"` // at most 64 bytes
}

// send sends a message with rows of buttons.
func (t *telegram) send(ctx context.Context, chat int64, text string, rows ...[]button) (sent message, err error) {
	err = t.call(ctx, "sendMessage", content(chat, text, rows), &sent)
	return sent, err
}

// edit replaces the text of a message and removes its buttons.
func (t *telegram) edit(ctx context.Context, m message, text string) error {
	params := content(m.Chat.ID, cut(text), [][]button{})
	params["message_id"] = m.ID
	return t.call(ctx, "editMessageText", params, nil)
}

// content is what a message shows. It has no parse_mode, so the text is shown as it is, and no
// preview, which would load links.
func content(chat int64, text string, rows [][]button) map[string]any {
	params := map[string]any{"chat_id": chat, "text": text, "link_preview_options": map[string]any{"is_disabled": true}}
	if rows != nil {
		params["reply_markup"] = map[string]any{"inline_keyboard": rows}
	}
	return params
}

// call calls a method. The token is a part of its URL, so no error names the URL.
func (t *telegram) call(ctx context.Context, method string, params map[string]any, result any) error {
	body, err := json.Marshal(params)
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, t.base+"/bot"+t.token+"/"+method, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("%s: the URL of the Bot API is wrong", method)
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := t.http.Do(r)
	if e := (*url.Error)(nil); errors.As(err, &e) {
		err = e.Err
	}
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	defer answer.Body.Close()
	reply := struct {
		OK          bool   `json:"ok"`
		Description string `json:"description"`
		Result      any    `json:"result"`
	}{Result: result}
	if err := json.UnmarshalRead(io.LimitReader(answer.Body, 8<<20), &reply); err != nil {
		return fmt.Errorf("%s: %s: no answer of the Bot API", method, answer.Status)
	}
	if !reply.OK {
		return fmt.Errorf("%s: %s: %q", method, answer.Status, reply.Description)
	}
	return nil
}

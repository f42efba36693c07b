package main

import (
	"context"
	"slices"
	"testing"
	"time"
)

func (c *chat) say(from, where int64, text string) {
	c.updates <- update{Message: &message{From: sender{from}, Chat: sender{where}, Text: text}}
}

// press presses the button of a message with a label.
func (c *chat) press(from, where int64, m call, label string) {
	for _, row := range m.Markup.Rows {
		if row[0].Text == label {
			c.updates <- update{Press: &press{ID: "press", From: sender{from}, Message: message{ID: m.MessageID, Chat: sender{where}}, Data: row[0].Data}}
		}
	}
}

// next returns the next call, which must be of one of the methods.
func (c *chat) next(t *testing.T, methods ...string) call {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	select {
	case one := <-c.calls:
		if !slices.Contains(methods, one.method) {
			t.Fatalf("%s says %q, want %v", one.method, one.Text, methods)
		}
		return one
	case <-ctx.Done():
		t.Fatal("no call of", methods)
		panic("unreachable")
	}
}

func (c *chat) expect(t *testing.T, text string) {
	t.Helper()
	if got := c.next(t, "sendMessage").Text; got != text {
		t.Errorf("it says %q, want %q", got, text)
	}
}

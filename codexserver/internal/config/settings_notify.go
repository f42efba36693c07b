package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/internal/text"
)

// Notify says what runs when a person should look.
type Notify struct {
	// Command is the program with its first arguments; none without one.
	Command []string `json:"command"`
	// On are the types of what is notified of, of [NotifyTypes].
	On []string `json:"on"`
	// After is how long a question must be open, or a turn have run, to be notified of.
	After time.Duration `json:"after"`
}

// What a notification may be about, as its member type.
const (
	NotifyQuestion = "approval-requested"
	NotifyEnd      = "agent-turn-complete"
)

// NotifyTypes are the types of notifications. It is read only.
var NotifyTypes = []string{NotifyEnd, NotifyQuestion}

func defaultNotify() Notify {
	return Notify{On: slices.Clone(NotifyTypes), After: 10 * time.Second}
}

func (n Notify) check() error {
	if len(n.Command) > 0 && n.Command[0] == "" {
		return errors.New("notify.command: want a program")
	}
	for _, word := range n.Command {
		if strings.ContainsRune(word, 0) {
			return errors.New("notify.command: a word has a NUL")
		}
	}
	for _, name := range n.On {
		if !slices.Contains(NotifyTypes, name) {
			return fmt.Errorf("notify.on: %q is not one of %s", name, text.Or(NotifyTypes))
		}
	}
	return nil
}

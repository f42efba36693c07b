package model

import (
	"fmt"

	"github.com/codexmcp/codexmcp/internal/slots"
)

// What answers hold until they are read is bounded, for each and for all together: a server that sends without end costs some
// ten times the memory of what it says.
const (
	// maxAnswer is how much an answer may say, in bytes: thinking, text and calls. Models say a quarter at most.
	maxAnswer = 2 << 20
	// maxRoom is how much all answers together may hold, and a place of it is what one takes at a time, both in bytes. What
	// is smaller than a place counts as nothing.
	maxRoom, place = 32 << 20, 64 << 10
)

// NewRoom returns room for the answers of clients that share it.
func NewRoom() *slots.Limit {
	return slots.NewLimit(maxRoom/place,
		fmt.Sprintf("all answers that come at this moment have more than %%d pieces of %d KiB", place>>10))
}

// held is the room that an answer takes.
type held struct {
	room   *slots.Limit
	said   int // bytes that the answer says so far
	leaves []func()
}

// says takes room for an answer that says so much so far.
func (h *held) says(bytes int) error {
	if h.said = bytes; bytes > maxAnswer {
		return tooMuch("the answer", maxAnswer, "bytes")
	}
	return h.take(0)
}

// take takes room for the answer, and for so much of the stream that has not been read.
func (h *held) take(unread int) error {
	for len(h.leaves) < (h.said+unread)/place {
		leave, err := h.room.Enter("")
		if err != nil {
			return &LimitError{What: err.Error()}
		}
		h.leaves = append(h.leaves, leave)
	}
	return nil
}

// free gives the room back.
func (h *held) free() {
	for _, leave := range h.leaves {
		leave()
	}
	h.leaves = nil
}

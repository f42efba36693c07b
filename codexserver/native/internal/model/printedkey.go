package model

import (
	"context"
	"time"
)

// printedKey is a key that the provider's program printed.
type printedKey struct {
	key, last string // last is the one before it, which an answer may still quote
	at        time.Time
}

// printedKey returns the key that was printed last. Without one its texts are empty.
func (c *Client) printedKey() *printedKey {
	if k := c.printed.Load(); k != nil {
		return k
	}
	return &printedKey{}
}

// printKey runs the program that prints the key, if there is one and its key is missing, too old or, with refused, not
// taken by the provider.
func (c *Client) printKey(ctx context.Context, refused bool) error {
	if c.PrintKey == nil {
		return nil
	}
	asked := time.Now()
	c.printing.Lock()
	defer c.printing.Unlock()
	k, most := c.printedKey(), time.Duration(orDefault(c.Provider.Auth.RefreshIntervalMS, 300_000))*time.Millisecond
	if k.key != "" && (most == 0 || time.Since(k.at) < most) && !refused || k.at.After(asked) { // by another request
		return nil
	}
	key, err := c.PrintKey(ctx)
	if err == nil {
		c.printed.Store(&printedKey{key, k.key, time.Now()})
	}
	return err
}

package auth

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestLoginTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		l := &login{answer: make(chan reply)}
		_, err := l.wait(context.Background())
		if !errors.Is(err, ErrTimeout) || time.Since(begin) != 10*time.Minute {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
	})
}

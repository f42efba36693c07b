package main

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRun(t *testing.T) {
	for confirm, want := range map[bool]string{
		true: `client calls: backup
server asks: Copy /home now? client answers: true
server reports: 1 of 3
server reports: 2 of 3
server reports: 3 of 3
server answers: 3 files
`,
		false: `client calls: backup
server asks: Copy /home now? client answers: false
server answers: the user does not want it (1)
`,
	} {
		var out bytes.Buffer
		if err := run(t.Context(), confirm, &out); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Errorf("confirm %t (-want +got):\n%s", confirm, diff)
		}
	}
}

func TestInterrupt(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	out := writer(func() { interrupt() }) // with the first line: the call has begun
	if err := run(ctx, true, out); !errors.Is(err, context.Canceled) {
		t.Errorf("run returned %v", err)
	}
}

type writer func()

func (w writer) Write(b []byte) (int, error) {
	w()
	return len(b), nil
}

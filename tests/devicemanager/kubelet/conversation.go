package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"sync"
)

// longestLine holds a pod with thousands of devices.
const longestLine = 64 << 20

// request is one line of the caller's.
type request struct {
	ID   int64           `json:"id"`
	Do   string          `json:"do"`
	With json.RawMessage `json:"with"`
}

// answer is one line of ours: OK or Error.
type answer struct {
	ID    int64  `json:"id"`
	OK    any    `json:"ok,omitempty"`
	Error string `json:"error,omitempty"`
}

// handler does what a request asks for; what it returns becomes JSON.
type handler func(with json.RawMessage) (any, error)

// command makes a handler of a function on values: fields that In does not have are refused.
func command[In, Out any](do func(In) (Out, error)) handler {
	return func(with json.RawMessage) (any, error) {
		var in In
		if len(with) > 0 {
			decoder := json.NewDecoder(bytes.NewReader(with))
			decoder.DisallowUnknownFields()
			if err := decoder.Decode(&in); err != nil {
				return nil, fmt.Errorf("reading the request: %w", err)
			}
		}
		return do(in)
	}
}

// conversation reads requests and writes answers, each whole.
type conversation struct {
	lines *bufio.Scanner
	mutex sync.Mutex
	out   *json.Encoder
}

func newConversation(in io.Reader, out io.Writer) *conversation {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, longestLine)
	return &conversation{lines: lines, out: json.NewEncoder(out)}
}

// run answers requests until there are no more. Each is handled on its own, as a plugin may let one wait for long.
func (c *conversation) run(handlers map[string]handler) error {
	for c.lines.Scan() {
		var asked request
		if err := json.Unmarshal(c.lines.Bytes(), &asked); err != nil {
			return fmt.Errorf("a line that is no request: %w", err)
		}
		handle, known := handlers[asked.Do]
		if !known {
			c.send(answer{ID: asked.ID, Error: fmt.Sprintf("nobody knows how to do %q", asked.Do)})
			continue
		}
		go func() {
			ok, err := handle(asked.With)
			if err != nil {
				c.send(answer{ID: asked.ID, Error: err.Error()})
				return
			}
			c.send(answer{ID: asked.ID, OK: ok})
		}()
	}
	return c.lines.Err()
}

func (c *conversation) send(line answer) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if err := c.out.Encode(line); err != nil {
		panic(fmt.Errorf("nobody reads our answers: %w", err))
	}
}

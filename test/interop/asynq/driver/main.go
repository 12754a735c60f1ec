// The real asynq behind a pipe: a line of JSON on standard input asks for something, and one on standard output answers.
// Lines with an "event" come in between, from handlers. It ends with its standard input.
//
//	driver ADDRESS   the Redis server's
//
//	→ {"id": 1, "verb": "enqueue", "args": {"type": "succeed", "queue": "low"}}
//	← {"event": "started", "task": "…", …}
//	← {"id": 1, "value": {"ID": "…", …}}
//	← {"id": 2, "error": "task already exists"}
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
)

type driver struct {
	options    asynq.RedisClientOpt
	client     *asynq.Client
	inspector  *asynq.Inspector
	redis      *redis.Client
	mutex      sync.Mutex
	servers    []*asynq.Server
	schedulers []*asynq.Scheduler
}

type request struct {
	ID   int             `json:"id"`
	Verb string          `json:"verb"`
	Args json.RawMessage `json:"args"`
}

type fields map[string]any

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: driver ADDRESS")
		os.Exit(2)
	}
	options := asynq.RedisClientOpt{Addr: os.Args[1]}
	d := &driver{
		options:   options,
		client:    asynq.NewClient(options),
		inspector: asynq.NewInspector(options),
		redis:     redis.NewClient(&redis.Options{Addr: os.Args[1]}),
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var asked request
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		go func() {
			value, err := d.do(asked)
			if err != nil {
				say(fields{"id": asked.ID, "error": err.Error()})
			} else {
				say(fields{"id": asked.ID, "value": value})
			}
		}()
	}
}

func (d *driver) do(asked request) (any, error) {
	switch asked.Verb {
	case "enqueue":
		return d.enqueue(asked.Args)
	case "inspect":
		return d.inspect(asked.Args)
	case "serve":
		return d.serve(asked.Args)
	case "shutdown":
		return d.shutdown(asked.Args)
	case "schedule":
		return d.schedule(asked.Args)
	case "unschedule":
		return d.unschedule(asked.Args)
	}
	return nil, errors.New("no such verb: " + asked.Verb)
}

var output sync.Mutex

func say(line fields) {
	output.Lock()
	defer output.Unlock()
	if err := json.NewEncoder(os.Stdout).Encode(line); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

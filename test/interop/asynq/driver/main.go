// Enqueues with the real asynq what the command line asks for, and prints what asynq says of it.
//
//	driver enqueue ADDRESS TYPE PAYLOAD   one task, with every option that asynq 0.25 can put into a message
//	driver inspect ADDRESS QUEUE ID       a task that somebody else has enqueued
//	driver serve ADDRESS QUEUE            runs the first task that comes, and stops
//	driver hold ADDRESS QUEUE             runs tasks that do not end, and a schedule, until it is told to end
//	driver servers ADDRESS                servers that are alive, and what they work on
//	driver entries ADDRESS                entries of schedulers that are alive
//	driver events ADDRESS ENTRY           what was enqueued for an entry
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/hibiken/asynq"
)

func main() {
	if len(os.Args) < 3 {
		fail(fmt.Errorf("usage: driver VERB ADDRESS …"))
	}
	redis := asynq.RedisClientOpt{Addr: os.Args[2]}
	switch os.Args[1] {
	case "enqueue":
		enqueue(redis, os.Args[3], []byte(os.Args[4]))
	case "inspect":
		inspect(redis, os.Args[3], os.Args[4])
	case "serve":
		serve(redis, os.Args[3])
	case "hold":
		hold(redis, os.Args[3])
	case "servers":
		show(asynq.NewInspector(redis).Servers())
	case "entries":
		entries(redis)
	case "events":
		show(asynq.NewInspector(redis).ListSchedulerEnqueueEvents(os.Args[3]))
	default:
		fail(fmt.Errorf("no such verb: %s", os.Args[1]))
	}
}

func enqueue(redis asynq.RedisClientOpt, kind string, payload []byte) {
	client := asynq.NewClient(redis)
	defer client.Close()
	info, err := client.Enqueue(asynq.NewTask(kind, payload),
		asynq.Queue("low"), asynq.MaxRetry(5), asynq.Timeout(90*time.Second),
		asynq.Deadline(time.Unix(4_000_000_000, 0)), asynq.Unique(time.Hour), asynq.Retention(24*time.Hour))
	show(info, err)
}

func inspect(redis asynq.RedisClientOpt, queue, id string) {
	inspector := asynq.NewInspector(redis)
	defer inspector.Close()
	show(inspector.GetTaskInfo(queue, id))
}

func serve(redis asynq.RedisClientOpt, queue string) {
	ran := make(chan map[string]any, 1)
	server := asynq.NewServer(redis, asynq.Config{
		Concurrency: 1, Queues: map[string]int{queue: 1}, LogLevel: asynq.FatalLevel,
	})
	handler := func(ctx context.Context, task *asynq.Task) error {
		id, _ := asynq.GetTaskID(ctx)
		deadline, _ := ctx.Deadline()
		ran <- map[string]any{
			"id": id, "type": task.Type(), "payload": string(task.Payload()),
			"timeoutSeconds": time.Until(deadline).Round(time.Second).Seconds(),
		}
		return nil
	}
	if err := server.Start(asynq.HandlerFunc(handler)); err != nil {
		fail(err)
	}
	seen := <-ran
	server.Shutdown()
	show(seen, nil)
}

func hold(redis asynq.RedisClientOpt, queue string) {
	server := asynq.NewServer(redis, asynq.Config{
		Concurrency: 1, Queues: map[string]int{queue: 1}, LogLevel: asynq.FatalLevel,
	})
	scheduler := asynq.NewScheduler(redis, &asynq.SchedulerOpts{LogLevel: asynq.FatalLevel})
	task := asynq.NewTask("tick", []byte("p"))
	if _, err := scheduler.Register("@every 1s", task, asynq.Queue("other"), asynq.MaxRetry(5)); err != nil {
		fail(err)
	}
	forever := func(context.Context, *asynq.Task) error { select {} }
	if err := server.Start(asynq.HandlerFunc(forever)); err != nil {
		fail(err)
	}
	if err := scheduler.Run(); err != nil { // returns when a signal comes
		fail(err)
	}
}

func entries(redis asynq.RedisClientOpt) {
	found, err := asynq.NewInspector(redis).SchedulerEntries()
	if err != nil {
		fail(err)
	}
	shown := []map[string]any{}
	for _, entry := range found {
		options := []string{}
		for _, option := range entry.Opts {
			options = append(options, option.String())
		}
		shown = append(shown, map[string]any{
			"id": entry.ID, "spec": entry.Spec, "type": entry.Task.Type(), "payload": string(entry.Task.Payload()),
			"options": options, "next": entry.Next, "prevIsZero": entry.Prev.IsZero(),
		})
	}
	show(shown, nil)
}

func show(what any, err error) {
	if err != nil {
		fail(err)
	}
	if err := json.NewEncoder(os.Stdout).Encode(what); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

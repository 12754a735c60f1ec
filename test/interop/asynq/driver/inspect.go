package main

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/hibiken/asynq"
)

type inspection struct {
	Method string            `json:"method"`
	Args   []json.RawMessage `json:"args"`
}

// inspect calls any method of asynq's Inspector; the options of lists are left out.
func (d *driver) inspect(args json.RawMessage) (any, error) {
	var asked inspection
	if err := json.Unmarshal(args, &asked); err != nil {
		return nil, err
	}
	method := reflect.ValueOf(d.inspector).MethodByName(asked.Method)
	if !method.IsValid() {
		return nil, fmt.Errorf("no such method: %s", asked.Method)
	}
	var values []reflect.Value
	for i, arg := range asked.Args {
		value := reflect.New(method.Type().In(i))
		if err := json.Unmarshal(arg, value.Interface()); err != nil {
			return nil, err
		}
		values = append(values, value.Elem())
	}
	results := method.Call(values)
	if err, failed := results[len(results)-1].Interface().(error); failed {
		return nil, err
	}
	if len(results) == 1 {
		return nil, nil
	}
	if entries, are := results[0].Interface().([]*asynq.SchedulerEntry); are {
		return showEntries(entries), nil
	}
	return results[0].Interface(), nil
}

// showEntries shows what JSON would leave out: the fields of a task and of an option are private.
func showEntries(entries []*asynq.SchedulerEntry) []fields {
	shown := []fields{}
	for _, entry := range entries {
		options := []string{}
		for _, option := range entry.Opts {
			options = append(options, option.String())
		}
		shown = append(shown, fields{
			"id": entry.ID, "spec": entry.Spec, "type": entry.Task.Type(), "payload": entry.Task.Payload(),
			"options": options, "next": entry.Next, "prev": entry.Prev, "prevIsZero": entry.Prev.IsZero(),
		})
	}
	return shown
}

// Embedded peers under the load of crates/zerohop/examples/embedded_load.rs: the same keys in the same order, the same phases, the
// same line of JSON for each. Compiled once per engine by `cargo x bench embedded`; the settings are those of bench/README.md.
//
//   peers DIRECTORY KEYS OPERATIONS GROUP CLASS       CLASS: memory, process or power (what a write survives)
//
// Exit code 2: this engine has no such class.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <time.h>

static const size_t KEY_BYTES = 15, VALUE_BYTES = 132;
static const uint64_t CACHE_BYTES = 512ull << 20;

[[noreturn]] static void die(const std::string& what) {
    fprintf(stderr, "%s\n", what.c_str());
    exit(1);
}

[[noreturn]] static void absent() { exit(2); }

// What every engine does. A group is what becomes durable together; `begin` and `end` are its ends.
struct Engine {
    virtual void begin() {}
    virtual void put(const char* key, const char* value) = 0;
    virtual bool get(const char* key, char* value) = 0;
    virtual void remove(const char* key) = 0;
    virtual void end() {}
    virtual ~Engine() {}
};

#if defined(ENGINE_LMDB)
#include <lmdb.h>

static void check(int code) {
    if (code != 0) die(mdb_strerror(code));
}

struct Lmdb : Engine {
    MDB_env* env;
    MDB_dbi dbi;
    MDB_txn* txn = nullptr;
    MDB_txn* reader = nullptr;

    Lmdb(const std::string& path, const std::string& kind, uint64_t) {
        if (kind == "memory") absent();
        check(mdb_env_create(&env));
        check(mdb_env_set_mapsize(env, 64ull << 30));
        check(mdb_env_open(env, path.c_str(), kind == "process" ? MDB_NOSYNC : 0, 0600));
        check(mdb_txn_begin(env, nullptr, 0, &txn));
        check(mdb_dbi_open(txn, nullptr, 0, &dbi));
        check(mdb_txn_commit(txn));
        txn = nullptr;
        check(mdb_txn_begin(env, nullptr, MDB_RDONLY, &reader));
        mdb_txn_reset(reader);
    }
    void begin() override { check(mdb_txn_begin(env, nullptr, 0, &txn)); }
    void end() override {
        check(mdb_txn_commit(txn));
        txn = nullptr;
    }
    void put(const char* key, const char* value) override {
        MDB_val k{KEY_BYTES, const_cast<char*>(key)}, v{VALUE_BYTES, const_cast<char*>(value)};
        check(mdb_put(txn, dbi, &k, &v, 0));
    }
    bool get(const char* key, char* value) override {
        check(mdb_txn_renew(reader));
        MDB_val k{KEY_BYTES, const_cast<char*>(key)}, v;
        int code = mdb_get(reader, dbi, &k, &v);
        if (code == 0) memcpy(value, v.mv_data, v.mv_size);
        mdb_txn_reset(reader);
        if (code != 0 && code != MDB_NOTFOUND) check(code);
        return code == 0;
    }
    void remove(const char* key) override {
        MDB_val k{KEY_BYTES, const_cast<char*>(key)};
        check(mdb_del(txn, dbi, &k, nullptr));
    }
    ~Lmdb() { mdb_env_close(env); }
};
using Chosen = Lmdb;

#elif defined(ENGINE_ROCKSDB)
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/table.h>
#include <rocksdb/write_batch.h>

struct Rocks : Engine {
    rocksdb::DB* db;
    rocksdb::WriteOptions write;
    rocksdb::WriteBatch batch;
    std::string found;

    static void check(const rocksdb::Status& status) {
        if (!status.ok()) die(status.ToString());
    }
    Rocks(const std::string& path, const std::string& kind, uint64_t) {
        rocksdb::Options options;
        options.create_if_missing = true;
        rocksdb::BlockBasedTableOptions table;
        table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
        table.block_cache = rocksdb::NewLRUCache(CACHE_BYTES);
        options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
        write.disableWAL = kind == "memory";
        write.sync = kind == "power";
        check(rocksdb::DB::Open(options, path, &db));
    }
    void end() override {
        check(db->Write(write, &batch));
        batch.Clear();
    }
    void put(const char* key, const char* value) override {
        check(batch.Put(rocksdb::Slice(key, KEY_BYTES), rocksdb::Slice(value, VALUE_BYTES)));
    }
    bool get(const char* key, char* value) override {
        rocksdb::Status status = db->Get(rocksdb::ReadOptions(), rocksdb::Slice(key, KEY_BYTES), &found);
        if (status.IsNotFound()) return false;
        check(status);
        memcpy(value, found.data(), found.size());
        return true;
    }
    void remove(const char* key) override { check(batch.Delete(rocksdb::Slice(key, KEY_BYTES))); }
    ~Rocks() { delete db; }
};
using Chosen = Rocks;

#elif defined(ENGINE_BERKELEYDB)
#include <db.h>

static void check(int code) {
    if (code != 0) die(db_strerror(code));
}

// memory: a hash in a cache, nothing logged. process, power: transactions, the log written or synced at each commit.
struct Berkeley : Engine {
    DB_ENV* env;
    DB* db;
    DB_TXN* txn = nullptr;
    bool logs;
    uint32_t commit;

    Berkeley(const std::string& path, const std::string& kind, uint64_t keys) {
        logs = kind != "memory";
        commit = kind == "power" ? DB_TXN_SYNC : DB_TXN_WRITE_NOSYNC;
        check(db_env_create(&env, 0));
        // A cache that holds all of it, whatever that is.
        uint64_t cache = keys * 400 > CACHE_BYTES ? keys * 400 : CACHE_BYTES;
        check(env->set_cachesize(env, cache >> 30, cache & ((1ull << 30) - 1), 1));
        uint32_t flags = DB_CREATE | DB_INIT_MPOOL | DB_PRIVATE;
        if (logs) {
            flags |= DB_INIT_TXN | DB_INIT_LOG | DB_INIT_LOCK;
            check(env->set_lg_bsize(env, 1 << 20));
            check(env->set_lk_max_locks(env, 100000));
            check(env->set_lk_max_objects(env, 100000));
            check(env->log_set_config(env, DB_LOG_AUTO_REMOVE, 1));
        }
        check(env->open(env, path.c_str(), flags, 0600));
        check(db_create(&db, env, 0));
        check(db->set_h_nelem(db, keys));
        check(db->open(db, nullptr, "data.db", nullptr, DB_HASH, DB_CREATE | (logs ? DB_AUTO_COMMIT : 0), 0600));
    }
    void begin() override {
        if (logs) check(env->txn_begin(env, nullptr, &txn, commit));
    }
    void end() override {
        if (logs) check(txn->commit(txn, commit));
        txn = nullptr;
        // Without checkpoints its log would hold everything twice.
        if (logs && ++groups % 1024 == 0) check(env->txn_checkpoint(env, 64 << 10, 0, 0));
    }
    uint64_t groups = 0;
    void put(const char* key, const char* value) override {
        DBT k{}, v{};
        k.data = const_cast<char*>(key), k.size = KEY_BYTES;
        v.data = const_cast<char*>(value), v.size = VALUE_BYTES;
        check(db->put(db, txn, &k, &v, 0));
    }
    bool get(const char* key, char* value) override {
        DBT k{}, v{};
        k.data = const_cast<char*>(key), k.size = KEY_BYTES;
        v.data = value, v.ulen = VALUE_BYTES, v.flags = DB_DBT_USERMEM;
        int code = db->get(db, nullptr, &k, &v, 0);
        if (code != 0 && code != DB_NOTFOUND) check(code);
        return code == 0;
    }
    void remove(const char* key) override {
        DBT k{};
        k.data = const_cast<char*>(key), k.size = KEY_BYTES;
        check(db->del(db, txn, &k, 0));
    }
    ~Berkeley() {
        check(db->close(db, 0));
        check(env->close(env, 0));
    }
};
using Chosen = Berkeley;

#elif defined(ENGINE_KYOTO)
#include <kchashdb.h>

// Its file is a mapping: what was written survives the process, though not in a state that it opens without a repair.
struct Kyoto : Engine {
    kyotocabinet::HashDB db;
    bool groups;

    Kyoto(const std::string& path, const std::string& kind, uint64_t keys) {
        if (kind != "process") absent();
        db.tune_buckets(2 * keys);
        db.tune_map(512ll * keys > (int64_t)CACHE_BYTES ? 512ll * keys : CACHE_BYTES);
        if (!db.open(path + "/data.kch", kyotocabinet::HashDB::OWRITER | kyotocabinet::HashDB::OCREATE)) fail();
    }
    [[noreturn]] void fail() { die(db.error().name()); }
    void put(const char* key, const char* value) override {
        if (!db.set(key, KEY_BYTES, value, VALUE_BYTES)) fail();
    }
    bool get(const char* key, char* value) override { return db.get(key, KEY_BYTES, value, VALUE_BYTES) >= 0; }
    void remove(const char* key) override {
        if (!db.remove(key, KEY_BYTES)) fail();
    }
    ~Kyoto() { db.close(); }
};
using Chosen = Kyoto;
#else
#error "say which engine: -DENGINE_LMDB, -DENGINE_ROCKSDB, -DENGINE_BERKELEYDB or -DENGINE_KYOTO"
#endif

static double seconds(clockid_t clock) {
    timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

// Every number below `keys` once, in an order that jumps about; three of them for the three phases.
static uint64_t shuffled(uint64_t index, uint64_t phase, uint64_t keys) {
    static const uint64_t STEPS[] = {2654435761ull, 2246822519ull, 3266489917ull};
    return (uint64_t)((unsigned __int128)index * STEPS[phase] % keys);
}

static void write_key(char* key, uint64_t number) {
    memcpy(key, "key:", 4);
    for (size_t at = KEY_BYTES; at-- > 4; number /= 10) key[at] = '0' + number % 10;
}

// A window into the alphabet, again and again.
static char letters[26 + VALUE_BYTES];

static const char* value_of(uint64_t number) { return letters + number % 26; }

int main(int count, char** words) {
    if (count != 6) die("peers DIRECTORY KEYS OPERATIONS GROUP CLASS");
    std::string path = words[1], kind = words[5];
    uint64_t keys = strtoull(words[2], nullptr, 10), operations = strtoull(words[3], nullptr, 10);
    uint64_t group = strtoull(words[4], nullptr, 10);
    Chosen engine(path, kind, keys);
    char key[KEY_BYTES], found[VALUE_BYTES];
    for (size_t at = 0; at < sizeof letters; at++) letters[at] = 'a' + at % 26;
    const char* names[] = {"insert", "get", "remove"};
    for (uint64_t phase = 0; phase < 3; phase++) {
        double cpu = seconds(CLOCK_PROCESS_CPUTIME_ID), wall = seconds(CLOCK_MONOTONIC);
        for (uint64_t index = 0; index < operations; index++) {
            uint64_t number = shuffled(index, operations == keys ? phase : 0, keys);
            write_key(key, number);
            if (phase == 1) {
                if (!engine.get(key, found) || memcmp(found, value_of(number), VALUE_BYTES) != 0) die("a value is not what it was");
                continue;
            }
            if (index % group == 0) engine.begin();
            if (phase == 0) {
                engine.put(key, value_of(number));
            } else {
                engine.remove(key);
            }
            if (index % group == group - 1 || index == operations - 1) engine.end();
        }
        printf("{\"phase\":\"%s\",\"cpu_us\":%.4f,\"wall_us\":%.4f}\n", names[phase],
               (seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu) * 1e6 / operations,
               (seconds(CLOCK_MONOTONIC) - wall) * 1e6 / operations);
        fflush(stdout);
    }
}

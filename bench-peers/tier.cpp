// RocksDB under the load of `cargo x bench tier`: a data set that is several times the memory it may use, read by many threads.
// Keys, values and both distributions are those of the load generator (crates/bench/src/load); settings are in bench/README.md.
//
//   tier DIRECTORY KEYS VALUE_BYTES CACHE_BYTES THREADS DIRECT      DIRECT: 1 reads past the page cache
//
// Loads, compacts, and prints one line of JSON. Then each line of standard input, `uniform SECONDS CPUS` or
// `zipf SECONDS CPUS` (CPUS as in 0 or 0,1), is a load of that length, answered by another line.
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <malloc.h>
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/table.h>
#include <rocksdb/write_batch.h>
#include <sched.h>
#include <sstream>
#include <string>
#include <thread>
#include <time.h>
#include <vector>

static const size_t KEY_BYTES = 15, POOL_BYTES = 64 << 10;
static const uint64_t KEYS_PER_BATCH = 256;
static const double THETA = 0.99;
// Operations between two looks at the clock.
static const int OPERATIONS_PER_LOOK = 16;

[[noreturn]] static void die(const std::string& what) {
    fprintf(stderr, "%s\n", what.c_str());
    exit(1);
}

static void check(const rocksdb::Status& status) {
    if (!status.ok()) die(status.ToString());
}

static double seconds(clockid_t clock) {
    timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

// As crates/base/src/rng.rs: xoshiro256** seeded by SplitMix64, whose finaliser also scrambles ranks.
static uint64_t mix(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
    return x ^ (x >> 31);
}

struct Rng {
    uint64_t state[4];

    explicit Rng(uint64_t seed) {
        for (uint64_t& word : state) word = mix(seed += 0x9E3779B97F4A7C15ull);
    }
    static uint64_t turn(uint64_t x, int bits) { return x << bits | x >> (64 - bits); }
    uint64_t next() {
        uint64_t result = turn(state[1] * 5, 7) * 9, shifted = state[1] << 17;
        state[2] ^= state[0];
        state[3] ^= state[1];
        state[1] ^= state[2];
        state[0] ^= state[3];
        state[2] ^= shifted;
        state[3] = turn(state[3], 45);
        return result;
    }
    uint64_t below(uint64_t bound) { return (uint64_t)((unsigned __int128)next() * bound >> 64); }
    double unit() { return (next() >> 11) / 9007199254740992.0; }
};

// As crates/bench/src/load/zipf.rs.
struct Zipf {
    uint64_t count;
    double zeta = 0, alpha, eta;

    explicit Zipf(uint64_t keys) : count(keys), alpha(1 / (1 - THETA)) {
        for (uint64_t rank = 1; rank <= count; rank++) zeta += pow(rank, -THETA);
        eta = (1 - pow(2.0 / count, 1 - THETA)) / (1 - (1 + pow(0.5, THETA)) / zeta);
    }
    uint64_t rank(Rng& rng) const {
        double u = rng.unit(), scaled = u * zeta;
        if (scaled < 1 || count == 1) return 0;
        if (scaled < 1 + pow(0.5, THETA)) return 1;
        uint64_t drawn = count * pow(eta * u - eta + 1, alpha);
        return drawn < count ? drawn : count - 1;
    }
    // Scrambled as the load generator does it.
    uint64_t draw(Rng& rng) const { return mix(rank(rng) + 1) % count; }
};

// The numbers of a test of crates/bench/src/load/keys.rs: another distribution must not pass for the same.
static void check_distribution() {
    static const uint64_t EXPECTED[] = {764688, 811783, 26560, 65921, 687938, 683844, 578789, 831856};
    Zipf zipf(1000000);
    Rng rng(7);
    for (uint64_t expected : EXPECTED) {
        if (zipf.draw(rng) != expected) die("the draws are not those of the load generator");
    }
}

struct Values {
    std::string pool;
    size_t bytes;

    explicit Values(size_t value_bytes) : bytes(value_bytes) {
        Rng rng(1);
        for (size_t at = 0; at < POOL_BYTES + bytes; at++) pool += 'a' + rng.below(26);
    }
    const char* of(uint64_t number) const { return pool.data() + mix(number) % POOL_BYTES; }
};

static void write_key(char* key, uint64_t number) {
    memcpy(key, "key:", 4);
    for (size_t at = KEY_BYTES; at-- > 4; number /= 10) key[at] = '0' + number % 10;
}

struct Store {
    uint64_t keys;
    Values values;
    Zipf zipf;
    rocksdb::DB* db;

    Store(const std::string& path, uint64_t count, size_t value_bytes, uint64_t cache_bytes, bool direct)
        : keys(count), values(value_bytes), zipf(count) {
        rocksdb::Options options;
        options.create_if_missing = true;
        options.compression = rocksdb::kNoCompression;
        // What is written must fit beside the cache while it is loaded.
        options.write_buffer_size = cache_bytes / 8;
        options.use_direct_reads = direct;
        rocksdb::BlockBasedTableOptions table;
        table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
        table.block_cache = rocksdb::NewLRUCache(cache_bytes);
        // Within the cache, so that its size is what the store takes; ahead of data, as a store with this data set would have it.
        table.cache_index_and_filter_blocks = true;
        table.cache_index_and_filter_blocks_with_high_priority = true;
        table.pin_l0_filter_and_index_blocks_in_cache = true;
        options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
        check(rocksdb::DB::Open(options, path, &db));
    }
    void load() {
        char key[KEY_BYTES];
        for (uint64_t first = 0; first < keys; first += KEYS_PER_BATCH) {
            rocksdb::WriteBatch batch;
            for (uint64_t number = first; number < keys && number < first + KEYS_PER_BATCH; number++) {
                write_key(key, number);
                check(batch.Put(rocksdb::Slice(key, KEY_BYTES), rocksdb::Slice(values.of(number), values.bytes)));
            }
            check(db->Write(rocksdb::WriteOptions(), &batch));
        }
        check(db->Flush(rocksdb::FlushOptions()));
        check(db->CompactRange(rocksdb::CompactRangeOptions(), nullptr, nullptr));
        malloc_trim(0);
    }
    // Gets of one thread until told to stop; every value is looked at.
    uint64_t read(bool is_zipf, uint64_t seed, const std::atomic<bool>& is_over) {
        Rng rng(seed);
        char key[KEY_BYTES];
        uint64_t gets = 0;
        rocksdb::PinnableSlice found;
        while (!is_over.load(std::memory_order_relaxed)) {
            for (int operation = 0; operation < OPERATIONS_PER_LOOK; operation++, gets++) {
                uint64_t number = is_zipf ? zipf.draw(rng) : rng.below(keys);
                write_key(key, number);
                found.Reset();
                check(db->Get(rocksdb::ReadOptions(), db->DefaultColumnFamily(), rocksdb::Slice(key, KEY_BYTES), &found));
                if (found.size() != values.bytes || memcmp(found.data(), values.of(number), values.bytes) != 0) {
                    die("a value is not what it was");
                }
            }
        }
        return gets;
    }
    ~Store() { delete db; }
};

static cpu_set_t cpus_of(const std::string& words) {
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    std::stringstream stream(words);
    for (std::string word; std::getline(stream, word, ',');) CPU_SET(atoi(word.c_str()), &cpus);
    return cpus;
}

static void run(Store& store, bool is_zipf, double length, const std::string& cpu_words, int threads) {
    static uint64_t seed = 1;
    cpu_set_t cpus = cpus_of(cpu_words);
    std::atomic<bool> is_over{false};
    std::atomic<uint64_t> gets{0};
    std::vector<std::thread> readers;
    double cpu = seconds(CLOCK_PROCESS_CPUTIME_ID), wall = seconds(CLOCK_MONOTONIC);
    for (int number = 0; number < threads; number++) {
        readers.emplace_back([&, own_seed = seed++] {
            if (sched_setaffinity(0, sizeof cpus, &cpus) != 0) die("these CPUs are not to be had: " + cpu_words);
            gets += store.read(is_zipf, own_seed, is_over);
        });
    }
    timespec sleep{(time_t)length, (long)((length - floor(length)) * 1e9)};
    nanosleep(&sleep, nullptr);
    is_over = true;
    for (std::thread& reader : readers) reader.join();
    printf("{\"gets\":%llu,\"wall_s\":%.6f,\"cpu_s\":%.6f}\n", (unsigned long long)gets.load(),
           seconds(CLOCK_MONOTONIC) - wall, seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu);
    fflush(stdout);
}

int main(int count, char** words) {
    if (count != 7) die("tier DIRECTORY KEYS VALUE_BYTES CACHE_BYTES THREADS DIRECT");
    check_distribution();
    auto number = [&](int index) { return strtoull(words[index], nullptr, 10); };
    Store store(words[1], number(2), number(3), number(4), number(6) != 0);
    double wall = seconds(CLOCK_MONOTONIC), cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
    store.load();
    printf("{\"gets\":0,\"wall_s\":%.6f,\"cpu_s\":%.6f}\n", seconds(CLOCK_MONOTONIC) - wall,
           seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu);
    fflush(stdout);
    for (std::string line; std::getline(std::cin, line);) {
        std::stringstream stream(line);
        std::string distribution, cpus;
        double length = 0;
        if (!(stream >> distribution >> length >> cpus) || (distribution != "uniform" && distribution != "zipf")) {
            die("not a load: " + line);
        }
        run(store, distribution == "zipf", length, cpus, number(5));
    }
}
